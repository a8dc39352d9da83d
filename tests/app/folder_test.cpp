// The folder of a run: one run's at a time, trusted in nothing, and looked for when it is moved or removed.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

using namespace kozero::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

void wait_for_lines(Workshop const& shop, std::string const& run, std::size_t lines) {
  wait_until([&] { return fs::exists(shop.file(run + "/metrics.jsonl")) && shop.metrics(run).size() >= lines; });
}

/// "1 2 3": the batches of all lines of metrics that have one.
std::string batches(Workshop const& shop, std::string const& run) {
  std::string text;
  for (auto const& object : shop.metrics(run)) {
    if (object.contains("batch")) text += object.at("batch").dump() + ' ';
  }
  return text;
}

std::string batches_to(int last) {
  std::string text;
  for (int batch = 1; batch <= last; ++batch) text += std::to_string(batch) + ' ';
  return text;
}

std::vector<double> losses(Workshop const& shop, std::string const& run) {
  std::vector<double> all;
  for (auto const& object : shop.metrics(run)) {
    if (object.contains("batch")) all.push_back(object.at("loss"));
  }
  return all;
}

std::vector<std::string> with(std::vector<std::string> all, std::vector<std::string> const& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Of each file for TensorBoard, by name, the batches that it has.
std::vector<int> batches_of_events(Workshop const& shop, std::string const& run) {
  std::vector<fs::path> files;
  for (auto const& item : fs::directory_iterator(shop.file(run))) {
    if (item.path().extension() == ".kozero") files.push_back(item.path());
  }
  std::ranges::sort(files);
  std::vector<int> counts;
  for (auto const& file : files) counts.push_back(times(shop.read(run / file.filename()), "tokens_per_s"));
  return counts;
}

std::vector<std::string> const endless = {"run.updates=1000000"};

} // namespace

TEST_CASE("a second run in a folder is refused and told by whom, and the first ends as if alone") { // CASES 28
  Workshop const shop;
  std::vector<std::string> const long_run = {"run.updates=4000", "checkpoint.every=500", "zero.stage=2"};
  REQUIRE(run_program(shop.train("alone", long_run)).status == 0);
  Program first(shop.train("run", long_run));
  wait_for_lines(shop, "run", 1);
  first.signal(SIGSTOP); // it cannot end before the others have come
  for (auto const& how :
       {std::vector<std::string>{}, {"--overwrite"}, {"--resume"}, {"--resume-from", shop.file("alone")}}) {
    auto const second = run_program(shop.train("run", with(long_run, how)));
    INFO(second.err);
    CHECK(second.status == 2);
    CHECK(contains(second.err, {shop.file("run"), "in use by another run", "process ", " on host ", "since "}));
  }
  CHECK(run_program(shop.train("run", with(long_run, {"--dry-run"}))).status == 0);
  first.signal(SIGCONT);
  auto const ended = first.wait();
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(shop.hash("run") == shop.hash("alone"));
  CHECK(batches(shop, "run") == batches_to(4000));
}

TEST_CASE("a file of a checkpoint that another program has locked is not called damaged") { // CASES 43
  Workshop const shop;
  REQUIRE(run_program(shop.train("run", {"run.updates=1"})).status == 0);
  int const file = ::open(shop.file("run/checkpoints/latest/rank-00000.h5").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(file, LOCK_EX) == 0);
  auto const resume = shop.train("run", {"run.updates=2", "--resume"});
  auto const refused = run_program(resume, {{"HDF5_USE_FILE_LOCKING", "TRUE"}}); // which has the last word
  INFO(refused.err);
  CHECK(refused.status == 1);
  CHECK(contains(refused.err, {"rank-00000.h5", "temporarily unavailable", "; another program has it locked"}));
  CHECK(refused.err.find("damaged") == std::string::npos);
  CHECK(run_program(resume).status == 0); // kozero itself asks for no lock
  ::close(file);
}

TEST_CASE("two runs that start half a second apart: one has the folder") { // CASES 28
  Workshop const shop;
  Program first(on_ranks(2, shop.train("run", endless)));
  std::this_thread::sleep_for(500ms);
  Program second(on_ranks(2, shop.train("run", endless)));
  wait_for_lines(shop, "run", 1);
  auto const refused = second.wait();
  INFO(refused.err);
  CHECK(refused.status == 2);
  CHECK(times(refused.err, "in use by another run") == 1);
  first.signal_all(SIGTERM);
  auto const stopped = first.wait();
  INFO(stopped.err);
  CHECK(contains(stopped.err, {"stopped by the signal TERM"}));
}

TEST_CASE("a run that is killed leaves its folder free") { // CASES 28
  Workshop const shop;
  Program first(shop.train("run", endless));
  wait_for_lines(shop, "run", 5);
  first.signal(SIGKILL);
  first.wait();
  auto const second = run_program(shop.train("run"));
  INFO(second.err);
  CHECK(second.status == 0);
}

TEST_CASE("a run resumed twice from different checkpoints has one lineage in its metrics") { // CASES 32
  Workshop const shop;
  std::vector<std::string> const same = {"data.validation=0.2", "schedule.kind=constant"};
  auto const base = with(same, {"checkpoint.every=4", "checkpoint.keep=9", "evaluate.every=4"});
  REQUIRE(run_program(shop.train("whole", with(base, {"run.updates=14"}))).status == 0);
  REQUIRE(run_program(shop.train("run", with(base, {"run.updates=12"}))).status == 0);
  {
    Program other(shop.train("run", with(same, {"run.updates=1000000", "checkpoint.every=1000000", "optimizer.lr=0.01",
                                                "--resume-from", shop.file("run/checkpoints/step-00000004")})));
    wait_until([&] { return shop.metrics("run").size() >= 40; });
    other.signal(SIGKILL);
    other.wait();
  }
  auto const again = run_program(shop.train("run", with(base, {"run.updates=14", "--resume"})));
  INFO(again.err);
  CHECK(again.status == 0);
  CHECK(shop.hash("run") == shop.hash("whole"));
  CHECK(batches(shop, "run") == batches(shop, "whole"));
  auto const mine = shop.metrics("run"), theirs = shop.metrics("whole");
  REQUIRE(mine.size() == theirs.size());
  for (std::size_t i = 0; i + 1 < mine.size(); ++i) {
    for (char const* const key : {"batch", "loss", "val_loss"}) {
      CHECK(mine[i].value(key, nlohmann::json()) == theirs[i].value(key, nlohmann::json()));
    }
  }
}

TEST_CASE("what stands in the place of a run's files is neither followed nor waited for by a run") { // CASES 41
  Workshop const shop;
  fs::create_directory(shop.file("run"));
  std::string const victim = shop.write("victim", "dear");
  for (char const* const name : {"deck.yaml", "metrics.jsonl", "metrics.jsonl.partial"}) {
    fs::create_symlink(victim, shop.file(std::string("run/") + name));
  }
  REQUIRE(run_program(shop.train("run")).status == 0);
  CHECK(shop.read("victim") == "dear");
  CHECK(shop.metrics("run").size() == 11);

  auto const resumed = [&] { return run_program(shop.train("run", {"run.updates=12", "--resume"})); };
  auto const pipe_at = [&](std::string const& name) {
    fs::rename(shop.file("run/" + name), shop.file("kept"));
    REQUIRE(::mkfifo(shop.file("run/" + name).c_str(), 0600) == 0);
  };
  for (std::string const name :
       {"metrics.jsonl", "checkpoints/step-00000010/checkpoint.h5", "checkpoints/step-00000010/rank-00000.h5"}) {
    pipe_at(name);
    auto const refused = resumed();
    INFO(refused.err);
    CHECK((refused.status == 1 || refused.status == 2));
    CHECK(refused.err.find("kozero: ") != std::string::npos);
    fs::rename(shop.file("kept"), shop.file("run/" + name));
  }
  pipe_at("deck.yaml");
  CHECK(resumed().status == 0);
  CHECK(fs::is_regular_file(shop.file("run/deck.yaml")));
}

TEST_CASE("overwriting a run leaves what is not its own, and names it") { // CASES 41
  Workshop const shop;
  REQUIRE(run_program(shop.train("run", {"checkpoint.every=5", "checkpoint.keep=2"})).status == 0);
  shop.write("run/checkpoints/step-00000005/notes.txt", "dear");
  shop.write("run/thesis.txt", "dear");
  auto const anew = run_program(shop.train("run", {"run.updates=3", "--overwrite"}));
  INFO(anew.err);
  CHECK(anew.status == 0);
  CHECK(contains(anew.err, {"keeps what kozero did not write: step-00000005/"}));
  CHECK(shop.read("run/checkpoints/step-00000005/notes.txt") == "dear");
  CHECK(shop.read("run/thesis.txt") == "dear");
  CHECK(shop.newest_step("run") == 3);
  CHECK(!fs::exists(shop.file("run/checkpoints/step-00000010")));
}

TEST_CASE("a run follows its folder where that is moved, on all ranks") { // CASES 42
  Workshop const shop;
  for (int const ranks : {1, 2}) {
    std::string const run = "run " + std::to_string(ranks), moved = "moved " + std::to_string(ranks);
    std::vector<std::string> const more = {"run.updates=1000000", "checkpoint.every=100", "zero.stage=2",
                                           "run.profile=true"};
    Program program(on_ranks(ranks, shop.train(run, more)));
    wait_for_lines(shop, run, 50);
    fs::rename(shop.file(run), shop.file(moved));
    auto const lines = shop.metrics(moved).size();
    wait_for_lines(shop, moved, lines + 300);
    program.signal_all(SIGTERM);
    auto const stopped = program.wait();
    INFO(stopped.err);
    CHECK(times(stopped.err, "is '" + shop.file(moved) + "' now") == 1);
    CHECK(!fs::exists(shop.file(run)));
    std::int64_t const updates = shop.metrics(moved).back().at("updates_applied");
    CHECK(shop.newest_step(moved) == updates);
    CHECK(batches(shop, moved) == batches_to(static_cast<int>(updates)));
    CHECK(fs::exists(shop.file(moved + "/profile/rank-000.json")));
  }
}

TEST_CASE("a run whose folder is removed makes it anew, says so once, and loses no line") { // CASES 42
  Workshop const shop;
  for (int const ranks : {1, 2}) {
    std::string const run = "run " + std::to_string(ranks);
    Program program(on_ranks(ranks, shop.train(run, {"run.updates=1000000", "checkpoint.every=500", "zero.stage=1",
                                                     "metrics.tensorboard=true"})));
    wait_for_lines(shop, run, 50);
    fs::remove_all(shop.file(run));
    wait_for_lines(shop, run, 100);
    CHECK(fs::exists(shop.file(run + "/deck.yaml")));
    auto const second = run_program(shop.train(run));
    CHECK(contains(second.err, {"in use by another run"}));
    program.signal_all(SIGTERM);
    auto const stopped = program.wait();
    INFO(stopped.err);
    CHECK(times(stopped.err, "was removed while the run goes on") == 1);
    std::int64_t const updates = shop.metrics(run).back().at("updates_applied");
    CHECK(shop.newest_step(run) == updates);
    CHECK(batches(shop, run) == batches_to(static_cast<int>(updates)));
    CHECK(batches_of_events(shop, run) == std::vector{static_cast<int>(updates)});
  }
}

TEST_CASE("files for TensorBoard have the batches of runs that wrote none") {
  Workshop const shop;
  auto const go_on = [&](int updates, std::string const& wanted) {
    auto const run = run_program(shop.train(
        "run", {"run.updates=" + std::to_string(updates), "--resume", "auto", "metrics.tensorboard=" + wanted}));
    INFO(run.err);
    CHECK(run.status == 0);
    return batches_of_events(shop, "run");
  };
  CHECK(go_on(3, "false").empty());
  CHECK(go_on(5, "true") == std::vector{5});
  CHECK(go_on(6, "true") == std::vector{5, 1});
  CHECK(go_on(8, "false") == std::vector{5, 1});
  CHECK(go_on(9, "true") == std::vector{5, 1, 9});
}

TEST_CASE("a run that is at its end saves again where its checkpoint was removed") { // CASES 42
  Workshop const shop;
  REQUIRE(run_program(shop.train("alone", {"run.updates=400"})).status == 0);
  Program program(shop.train("run", {"run.updates=400", "checkpoint.every=400"}));
  wait_until([&] { return fs::exists(shop.file("run/metrics.jsonl")); });
  program.signal(SIGSTOP);
  fs::remove_all(shop.file("run"));
  program.signal(SIGCONT);
  auto const ended = program.wait();
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(shop.newest_step("run") == 400);
  CHECK(shop.hash("run") == shop.hash("alone"));
  CHECK(losses(shop, "run") == losses(shop, "alone"));
}

TEST_CASE("a run whose place another one has taken stops, and names it") { // CASES 42
  Workshop const shop;
  Program first(shop.train("run", endless));
  wait_for_lines(shop, "run", 5);
  first.signal(SIGSTOP);
  fs::remove_all(shop.file("run"));
  Program second(shop.train("run", endless));
  wait_for_lines(shop, "run", 5);
  first.signal(SIGCONT);
  auto const ended = first.wait();
  INFO(ended.err);
  CHECK(ended.status != 0);
  CHECK(contains(ended.err, {"was removed while the run goes on", "in use by another run", "process "}));
  second.signal(SIGTERM);
  auto const stopped = second.wait();
  CHECK(stopped.status == 75);
  std::int64_t const updates = shop.metrics("run").back().at("updates_applied");
  CHECK(batches(shop, "run") == batches_to(static_cast<int>(updates)));
}
