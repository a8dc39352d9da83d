// What a run makes of its data and its machine: files that differ, change or are none, and memory that is not there.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <filesystem>

using namespace kozero::test;

namespace fs = std::filesystem;

namespace {

/// A run of 10 updates stopped at update 5 by its deck.
void train_half(Workshop const& shop) {
  auto const half = run_program(shop.train("run", {"run.updates=5"}));
  INFO(half.err);
  REQUIRE(half.status == 0);
}

} // namespace

TEST_CASE("ranks that find different files of one name are refused") { // CASES 33
  Workshop const shop;
  for (char const* folder : {"a", "b"}) {
    fs::create_directory(shop.file(folder));
    shop.write(std::string(folder) + "/text", shop.read("text"));
  }
  auto const train_in_both = [&] {
    std::vector<std::string> arguments = {KOZERO_MPIEXEC};
    for (char const* folder : {"a", "b"}) {
      auto rank = shop.train("run", {"data.train=text", "--overwrite"});
      rank.insert(rank.begin(), {KOZERO_MPIEXEC_N, "1", "-wdir", shop.file(folder)});
      if (arguments.size() > 1) arguments.push_back(":");
      arguments.insert(arguments.end(), rank.begin(), rank.end());
    }
    return run_program(arguments);
  };
  auto const same = train_in_both();
  INFO(same.err);
  REQUIRE(same.status == 0);
  shop.write("b/text", shop.read("text") + "and more");
  auto const refused = train_in_both();
  INFO(refused.err);
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, {"ranks have different data", "rank 0 on host", shop.file("a/text"), "rank 1 on host",
                               shop.file("b/text"), std::to_string(shop.read("text").size() + 8) + " bytes"}));
  fs::remove(shop.file("b/text"));
  auto const missing = train_in_both();
  INFO(missing.err);
  CHECK(missing.status == 2);
  CHECK(contains(missing.err, {"rank 1 on host", "'text' cannot be read", "looked for in '" + shop.file("b") + "'"}));
}

TEST_CASE("a run that goes on with other data is refused unless that is asked for") { // CASES 34
  Workshop const shop;
  train_half(shop);
  std::string const text = shop.read("text");
  for (std::string const& other : {text.substr(0, text.size() - 1), "X" + text.substr(1)}) {
    shop.write("text", other);
    auto const refused = run_program(shop.train("run", {"--resume"}));
    INFO(refused.err);
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, {"trained on other data (data.train: '" + shop.file("text") + "'",
                                 std::to_string(text.size()) + " bytes", "--allow-other-data"}));
    CHECK(shop.newest_step("run") == 5);
  }
  auto const allowed = run_program(shop.train("run", {"--resume", "--allow-other-data"}));
  INFO(allowed.err);
  CHECK(allowed.status == 0);
  CHECK(contains(allowed.err, {"resume: data.train: '" + shop.file("text") + "' has "}));
  CHECK(shop.newest_step("run") == 10);
}

TEST_CASE("a data file that has only moved is the same data") { // CASES 34
  Workshop const shop;
  train_half(shop);
  fs::rename(shop.file("text"), shop.file("moved"));
  auto const resumed = run_program(shop.train("run", {"--resume", "data.train=" + shop.file("moved")}));
  INFO(resumed.err);
  CHECK(resumed.status == 0);
  CHECK(contains(resumed.err, {"resume: data.train: " + shop.file("text") + " -> " + shop.file("moved") +
                               " (harmless: the same data)"}));
}

TEST_CASE("a data file that shrinks during a run ends it in words, saved, and the run can go on") { // CASES 35
  Workshop const shop;
  std::string const text = shop.read("text");
  for (int const ranks : {1, 2}) {
    INFO(ranks << " ranks");
    std::string const run = "run " + std::to_string(ranks);
    Program program(on_ranks(ranks, shop.train(run, {"run.updates=1000000", "zero.stage=2"})));
    wait_until([&] { return fs::exists(shop.file(run + "/metrics.jsonl")) && shop.metrics(run).size() > 20; });
    fs::resize_file(shop.file("text"), 100);
    auto const ended = program.wait();
    INFO(ended.err);
    CHECK(ended.status == 1);
    CHECK(contains(ended.err,
                   {shop.file("text") + "' cannot be read at offset ", "had " + std::to_string(text.size()) + " bytes",
                    "is saved; go on from there with --resume"}));
    CHECK(times(ended.err, "cannot be read") == 1);
    std::int64_t const step = shop.newest_step(run);
    CHECK(step >= 20);

    shop.write("text", text);
    auto const resumed = run_program(
        on_ranks(ranks, shop.train(run, {"run.updates=" + std::to_string(step + 2), "zero.stage=2", "--resume"})));
    INFO(resumed.err);
    CHECK(resumed.status == 0);
    CHECK(shop.metrics(run).back().at("updates_applied") == step + 2);
  }
}

TEST_CASE("a state larger than the machine is refused before it is allocated") { // CASES 36
  Workshop const shop;
  // Petabytes, so that a run without the question fails at once.
  std::vector<std::string> const huge = {"model.width=1048576", "model.heads=64", "model.vocabulary=2147483647"};
  for (int const ranks : {1, 2}) {
    auto const refused = run_program(on_ranks(ranks, shop.train("run", huge)));
    INFO(refused.err);
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, {"host memory: ", " on host ", "left for", "smaller with", "memory.host_limit"}));
    CHECK(times(refused.err, "host memory: ") == 1);
  }
  CHECK(!fs::exists(shop.file("run/checkpoints")));
}

TEST_CASE("a run whose schedule jumps where it goes on says so") {
  Workshop const shop;
  std::vector<std::string> const cosine = {"schedule.kind=cosine", "schedule.warmup=0", "schedule.min_lr=1e-5",
                                           "optimizer.lr=1e-3"};
  auto const train = [&](std::vector<std::string> more) {
    more.insert(more.end(), cosine.begin(), cosine.end());
    return run_program(shop.train("run", more));
  };
  REQUIRE(train({"run.updates=10"}).status == 0);
  CHECK(!contains(train({"run.updates=10", "--resume"}).err, {"the learning rate"}));
  auto const extended = train({"run.updates=21", "--resume"});
  INFO(extended.err);
  CHECK(extended.status == 0);
  // Half way of the new cosine, and past the old one's end.
  CHECK(contains(extended.err, {"resume: the learning rate of update 11 is 0.000505, and was 1e-05 by the checkpoint's "
                                "deck (peak 0.001, was 0.001)"}));
}

TEST_CASE(
    "a byte model with a vocabulary of a tokenizer is warned of, and its other ids are printed as ids") { // CASES 54
  Workshop const shop;
  auto const trained = run_program(
      shop.train("run", {"model.vocabulary=5000", "run.updates=1", "optimizer.lr=1e-9", "schedule.min_lr=0"}));
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  CHECK(contains(trained.err, {"warning: '" + shop.file("text") + "'", "model.vocabulary is 5000"}));
  auto const written =
      run_program({KOZERO_BINARY, "generate", "--checkpoint", shop.file("run"), "--prompt", "a", "--tokens", "20"});
  CHECK(written.status == 0);
  CHECK(times(written.out, "<") > 10); // an untrained model draws from all of them
  CHECK(times(written.out, ">") == times(written.out, "<"));
}
