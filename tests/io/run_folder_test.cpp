#include "io/run_folder.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <unistd.h>

#include <filesystem>
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
    CHECK(std::distance(std::filesystem::directory_iterator(dir), {}) == 1);
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
  run.remove_checkpoints();
  CHECK(!run.holds_checkpoints());
  CHECK(std::filesystem::is_empty(run.checkpoints()));

  std::filesystem::remove(run.deck_file());
  std::filesystem::create_directory(run.deck_file());
  CHECK(contains(message_of<Error>([&] { run.write_deck("x"); }), {"run/deck.yaml' cannot be written", "; free"}));
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
