#include "io/run_folder.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

using namespace kozero;
using namespace kozero::test;

namespace {

std::string refusal(std::string const& dir) {
  return message_of<InputError>([&] { RunFolder{dir}; });
}

} // namespace

TEST_CASE("a run folder is made with its parents, and nothing else is left in it") {
  TemporaryFolder const folder;
  std::string const dir = folder.file("a/b/run");
  for (int time = 0; time < 2; ++time) { // a folder that is there already will do
    RunFolder const run(dir);
    CHECK(run.path() == dir);
    CHECK(run.metrics_file() == dir + "/metrics.jsonl");
    CHECK(run.checkpoints() == dir + "/checkpoints");
    CHECK(std::filesystem::is_directory(dir));
    CHECK(std::filesystem::is_directory(run.checkpoints()));
    CHECK(std::filesystem::is_empty(run.checkpoints()));
    CHECK(std::filesystem::is_regular_file(dir + "/lock"));
    CHECK(std::distance(std::filesystem::directory_iterator(dir), {}) == 2);
  }
  CHECK(RunFolder(dir + "//").path() == dir);
}

TEST_CASE("a relative run folder counts from the working folder") {
  TemporaryFolder const folder;
  auto const before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  RunFolder const run("runs/x");
  std::filesystem::current_path(before);
  CHECK(std::filesystem::path(run.path()).is_absolute());
  CHECK(std::filesystem::is_directory(folder.file("runs/x/checkpoints")));
  CHECK(std::filesystem::equivalent(run.path(), folder.file("runs/x")));
}

TEST_CASE("a checkpoint whose replacement was cut short has its name again") {
  namespace fs = std::filesystem;
  TemporaryFolder const folder;
  fs::path const checkpoints = folder.file("run/checkpoints");
  for (char const* const name :
       {"step-00000001.replaced", "step-00000002", "step-00000002.replaced", "notes.replaced"}) {
    fs::create_directories(checkpoints / name);
    std::ofstream(checkpoints / name / "checkpoint.h5") << name;
  }
  fs::create_directories(checkpoints / "step-00000003"); // no checkpoint
  fs::create_directories(checkpoints / "step-00000003.replaced");
  RunFolder const run(folder.file("run"));
  CHECK(fs::exists(checkpoints / "step-00000003.replaced"));
  CHECK(folder.read("run/checkpoints/step-00000001/checkpoint.h5") == "step-00000001.replaced");
  CHECK(folder.read("run/checkpoints/step-00000002/checkpoint.h5") == "step-00000002");
  CHECK(fs::exists(checkpoints / "notes.replaced"));
  CHECK_FALSE(fs::exists(checkpoints / "step-00000001.replaced"));
  CHECK_FALSE(fs::exists(checkpoints / "step-00000002.replaced"));
}

TEST_CASE("a run folder knows its checkpoints, and keeps the deck") {
  TemporaryFolder const folder;
  RunFolder const run(folder.file("run"));
  run.write_deck("run:\n  name: a\n");
  run.write_deck("run: {}\n"); // in place of the first
  CHECK(folder.read("run/deck.yaml") == "run: {}\n");

  std::filesystem::create_directory(folder.file("run/checkpoints/step-00000005.partial"));
  folder.write("run/checkpoints/step-00000005.partial/checkpoint.h5", "x");
  CHECK(!run.holds_checkpoints());
  std::filesystem::create_directory(folder.file("run/checkpoints/step-00000005"));
  folder.write("run/checkpoints/step-00000005/checkpoint.h5", "x");
  CHECK(run.holds_checkpoints()); // without the link `latest` too
  std::filesystem::create_directory_symlink("step-00000005", folder.file("run/checkpoints/latest"));
  folder.write("run/metrics.1.jsonl", "{}\n");
  run.remove_checkpoints();
  CHECK(!run.holds_checkpoints());
  CHECK(std::filesystem::is_empty(run.checkpoints()));
  CHECK(!std::filesystem::exists(folder.file("run/metrics.1.jsonl")));

  std::filesystem::remove(run.deck_file());
  std::filesystem::create_directory(run.deck_file());
  CHECK(contains(message_of<Error>([&] { run.write_deck("x"); }), {"run/deck.yaml' cannot be written", "; free"}));
}

TEST_CASE("only what kozero writes is removed with the checkpoints of a run") { // CASES 41
  TemporaryFolder const folder;
  RunFolder const run(folder.file("run"));
  std::string const at = "run/checkpoints/";
  for (char const* const step : {"step-00000005", "step-00000006", "step-00000007.partial"}) {
    std::filesystem::create_directory(folder.file(at + step));
    for (char const* const file : {"/checkpoint.h5", "/rank-00000.h5"}) folder.write(at + step + file, "x");
  }
  folder.write(at + "step-00000006/notes.txt", "dear");
  folder.write(at + "best.txt", "dear");
  std::filesystem::create_directory(folder.file("elsewhere"));
  folder.write("elsewhere/checkpoint.h5", "dear");
  std::filesystem::create_directory_symlink(folder.file("elsewhere"), folder.file(at + "step-00000008"));
  std::string const events = "run/events.out.tfevents.1700000000.";
  folder.write(events + "host.kozero", "x");
  folder.write(events + "of another program", "dear");
  std::filesystem::create_symlink(folder.file("elsewhere"), folder.file(events + "link.kozero"));
  run.remove_checkpoints();
  CHECK(!run.holds_checkpoints());
  CHECK(!std::filesystem::exists(folder.file(events + "host.kozero")));
  CHECK(std::filesystem::exists(folder.file(events + "of another program")));
  CHECK(std::filesystem::exists(folder.file(events + "link.kozero")));
  std::set<std::string> left;
  for (auto const& item : std::filesystem::recursive_directory_iterator(run.checkpoints())) {
    left.insert(std::filesystem::relative(item.path(), run.checkpoints()).string());
  }
  CHECK(left == std::set<std::string>{"best.txt", "step-00000006", "step-00000006/notes.txt"});
  CHECK(folder.read("elsewhere/checkpoint.h5") == "dear");
}

TEST_CASE("only names that kozero gives are those of checkpoints") { // CASES 41
  TemporaryFolder const folder;
  RunFolder const run(folder.file("run"));
  for (char const* const name :
       {"step-0000000012", "step-12", "step--0000012", "step-99999999999999999999", "step-", "x"}) {
    std::filesystem::create_directory(folder.file("run/checkpoints/") + name);
    folder.write(std::string("run/checkpoints/") + name + "/checkpoint.h5", "x");
    INFO(name);
    CHECK(!run.holds_checkpoints()); // another name would be looked for than the one that is there
  }
  std::filesystem::create_directory(folder.file("run/checkpoints/step-123456789"));
  folder.write("run/checkpoints/step-123456789/checkpoint.h5", "x");
  CHECK(run.holds_checkpoints());
}

TEST_CASE("what stands in the place of a run's files is neither followed nor waited for") { // CASES 41
  TemporaryFolder const folder;
  std::string const victim = folder.write("victim", "dear");
  std::filesystem::create_directory(folder.file("run"));
  std::filesystem::create_symlink(victim, folder.file("run/lock"));
  CHECK(contains(refusal(folder.file("run")), {folder.file("run/lock"), "is a link", "; remove it"}));
  std::filesystem::remove(folder.file("run/lock"));
  REQUIRE(::mkfifo(folder.file("run/lock").c_str(), 0600) == 0);
  CHECK(contains(refusal(folder.file("run")), {folder.file("run/lock"), "is a pipe"}));
  std::filesystem::remove(folder.file("run/lock"));
  std::filesystem::create_directory(folder.file("run/lock"));
  CHECK(contains(refusal(folder.file("run")), {folder.file("run/lock"), "is a folder"}));
  std::filesystem::remove(folder.file("run/lock"));

  RunFolder const run(folder.file("run"));
  std::filesystem::create_symlink(victim, run.deck_file());
  std::filesystem::create_symlink(victim, run.deck_file() + ".partial");
  run.write_deck("deck");
  CHECK(!std::filesystem::is_symlink(run.deck_file()));
  CHECK(folder.read("run/deck.yaml") == "deck");
  std::filesystem::remove(run.deck_file());
  REQUIRE(::mkfifo(run.deck_file().c_str(), 0600) == 0);
  run.write_deck("deck");
  CHECK(folder.read("run/deck.yaml") == "deck");
  CHECK(folder.read("victim") == "dear");
}

TEST_CASE("a run folder is one run's, and it is told whose") { // CASES 28
  TemporaryFolder const folder;
  {
    ::setenv("SLURM_JOB_ID", "4711", 1);
    RunFolder const run(folder.file("run"));
    ::unsetenv("SLURM_JOB_ID");
    CHECK(contains(refusal(folder.file("run")),
                   {folder.file("run"), "in use by another run", "process " + std::to_string(::getpid()) + " on host ",
                    "job 4711", "since 20", "; wait"}));
    for (char const* const text : {"", "{", "[]", "{\"host\":1,\"pid\":2}"}) { // who has it need not be kozero of today
      folder.write("run/lock", text);
      CHECK(contains(refusal(folder.file("run")), {"in use by another run"}));
    }
  }
  CHECK(refusal(folder.file("run")).empty()); // the file alone means nothing
}

TEST_CASE("a lock that is removed under a run is made anew") { // CASES 28
  TemporaryFolder const folder;
  RunFolder run(folder.file("run"));
  std::filesystem::remove(folder.file("run/lock"));
  CHECK(run.look() == RunFolder::Found::in_place);
  CHECK(contains(refusal(folder.file("run")), {"in use by another run"}));
}

TEST_CASE("a folder that is moved is followed, one that is removed is made anew") { // CASES 42
  TemporaryFolder const folder;
  RunFolder run(folder.file("run"));
  CHECK(run.look() == RunFolder::Found::in_place);
  std::filesystem::rename(folder.file("run"), folder.file("moved"));
  std::filesystem::create_directory(folder.file("run")); // whatever is there now
  CHECK(run.look() == RunFolder::Found::moved);
  CHECK(run.path() == folder.file("moved"));
  CHECK(run.look() == RunFolder::Found::in_place);
  CHECK(contains(refusal(folder.file("moved")), {"in use by another run"}));

  std::filesystem::remove_all(folder.file("moved"));
  CHECK(run.look() == RunFolder::Found::made_anew);
  CHECK(run.path() == folder.file("moved"));
  CHECK(std::filesystem::is_directory(run.checkpoints()));
  CHECK(run.look() == RunFolder::Found::in_place);
  CHECK(contains(refusal(folder.file("moved")), {"in use by another run"}));

  std::filesystem::remove_all(folder.file("moved"));
  SECTION("but not where another run is") {
    RunFolder const other(folder.file("moved"));
    CHECK(contains(message_of<InputError>([&] { run.look(); }), {folder.file("moved"), "in use by another run"}));
  }
  SECTION("or was") {
    std::filesystem::create_directories(folder.file("moved/checkpoints/step-00000005"));
    folder.write("moved/checkpoints/step-00000005/checkpoint.h5", "x");
    CHECK(contains(message_of<InputError>([&] { run.look(); }), {folder.file("moved"), "another one is in its place"}));
  }
}

TEST_CASE("a run folder that cannot be is refused with its name and the cause") {
  TemporaryFolder const folder;
  folder.write("file", "x");
  CHECK(contains(refusal(folder.file("file")), {folder.file("file"), "is a file", "; correct run.dir"}));
  CHECK(contains(refusal(folder.file("file/run")), {"file/run'", "file' is a file", "; correct run.dir"}));
  CHECK(contains(refusal(""), {"run.dir is empty", "; name"}));
  std::filesystem::create_directory(folder.file("r"));
  folder.write("r/checkpoints", "x");
  CHECK(contains(refusal(folder.file("r")), {"r/checkpoints' is a file", "; correct run.dir"}));
  if (::geteuid() != 0) {
    std::filesystem::create_directories(folder.file("locked/checkpoints"));
    std::filesystem::permissions(folder.file("locked"),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK(contains(refusal(folder.file("locked")), {"locked' cannot be written to", "denied", "; correct run.dir"}));
    std::filesystem::permissions(folder.file("locked"), std::filesystem::perms::owner_all);
  }
  // Where not even root may write.
  if (std::filesystem::is_directory("/proc/self")) {
    CHECK(contains(refusal("/proc/self/run"), {"/proc/self/run", "cannot be made", "; correct run.dir"}));
  }
}
