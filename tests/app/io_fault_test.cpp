// A run that is killed at a call by which it saves, or for which one fails: what was saved before stays, and the run
// goes on to the bits of one that nothing befell. Every call is tried where KOZERO_EVERY_CALL is set, else some.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>

using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> with(std::vector<std::string> all, std::vector<std::string> const& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Runs of three saves; the second replaces nothing, the third removes the first.
class Saves {
public:
  explicit Saves(bool in_background)
      : more_({"run.updates=6", "checkpoint.every=2", "checkpoint.keep=2", "zero.stage=2",
               in_background ? "checkpoint.async=true" : "checkpoint.async=false"}) {
    Program::Environment const counting = {{"LD_PRELOAD", KOZERO_IO_FAULT}, {"IO_FAULT_COUNT", shop_.file("count")}};
    REQUIRE(run_program(shop_.train("whole", more_), counting).status == 0);
    calls_ = std::stol(shop_.read("count"));
    hash_ = shop_.hash("whole");
  }

  long calls() const { return calls_; }

  ProgramResult struck(std::string const& what, long call) const {
    fs::remove_all(shop_.file("run"));
    return run_program(shop_.train("run", more_),
                       {{"LD_PRELOAD", KOZERO_IO_FAULT}, {"IO_FAULT", what + " " + std::to_string(call)}});
  }
  /// What is there is whole, and leads to the same end.
  void check_left() const {
    bool const has_checkpoint = [&] {
      for (int const step : {2, 4, 6}) {
        if (fs::exists(shop_.file("run/checkpoints/step-0000000" + std::to_string(step) + "/checkpoint.h5")))
          return true;
      }
      return false;
    }();
    if (has_checkpoint) {
      auto const verified = run_program({KOZERO_BINARY, "checkpoint", "verify", shop_.file("run")});
      INFO(verified.out << verified.err);
      CHECK(verified.status == 0);
    }
    auto const resumed = run_program(shop_.train("run", with(more_, {"--resume", "auto"})));
    INFO(resumed.err);
    CHECK(resumed.status == 0);
    CHECK(shop_.hash("run") == hash_);
  }
  std::int64_t steps() const {
    std::int64_t count = 0;
    for (auto const& item : fs::directory_iterator(shop_.file("run/checkpoints"))) {
      count += item.is_directory() && !item.is_symlink() && item.path().extension().empty() ? 1 : 0;
    }
    return count;
  }
  std::string hash_of_run() const { return shop_.hash("run"); }
  std::string const& hash() const { return hash_; }

private:
  Workshop shop_;
  std::vector<std::string> more_;
  long calls_ = 0;
  std::string hash_;
};

/// Numbers of calls to strike at: all, or every so manieth, beginning elsewhere for each `kind`.
std::vector<long> some(long calls, long kind) {
  long const stride = std::getenv("KOZERO_EVERY_CALL") ? 1 : std::max(1L, calls / 16);
  std::vector<long> all;
  for (long call = 1 + kind % stride; call <= calls; call += stride) all.push_back(call);
  return all;
}

} // namespace

TEST_CASE("a run killed at any call of a save goes on from what it had saved") { // CASES 31
  for (bool const in_background : {false, true}) {
    Saves const saves(in_background);
    REQUIRE(saves.calls() > 100);
    for (long const call : some(saves.calls(), in_background ? 3 : 0)) {
      INFO("call " << call << " of " << saves.calls() << ", in the background: " << in_background);
      CHECK(saves.struck("kill", call).status == 128 + SIGKILL);
      saves.check_left();
    }
  }
}

TEST_CASE("a checkpoint is not lost while another one of its number replaces it, where names cannot change places") {
  Workshop const shop;
  std::vector<std::string> const more = {"run.updates=4", "checkpoint.every=2", "zero.stage=2"};
  REQUIRE(run_program(shop.train("whole", more)).status == 0);
  std::string const step = shop.file("run/checkpoints/step-00000004/checkpoint.h5");
  auto const replace = [&](Program::Environment environment) {
    fs::remove_all(shop.file("run"));
    fs::copy(shop.file("whole"), shop.file("run"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    environment["LD_PRELOAD"] = KOZERO_IO_FAULT;
    environment["IO_FAULT_NO_EXCHANGE"] = "1";
    auto const from = shop.file("run/checkpoints/step-00000002");
    return run_program(shop.train("run", with(more, {"--resume-from", from})), environment).status;
  };
  REQUIRE(replace({{"IO_FAULT_COUNT", shop.file("count")}}) == 0);
  long const calls = std::stol(shop.read("count"));
  for (long call = calls; call >= std::max(1L, calls - 30); --call) { // the names change near the end
    INFO("call " << call << " of " << calls);
    CHECK(replace({{"IO_FAULT", "kill " + std::to_string(call)}}) == 128 + SIGKILL);
    CHECK(run_program({KOZERO_BINARY, "checkpoint", "prune", shop.file("run"), "--keep", "9"}).status == 0);
    CHECK(fs::exists(step));
    CHECK(run_program(shop.train("run", with(more, {"--resume", "auto"}))).status == 0);
    CHECK(shop.hash("run") == shop.hash("whole"));
  }
}

TEST_CASE("a run goes on where a call of a save fails, unless it is the last save") { // CASES 37
  for (bool const in_background : {false, true}) {
    Saves const saves(in_background);
    int const causes[] = {ENOSPC, EIO, EDQUOT, EROFS};
    long kind = 0;
    for (int const cause : causes) {
      for (long const call : some(saves.calls(), kind += 2)) {
        INFO("call " << call << " of " << saves.calls() << ", in the background: " << in_background << ", " << cause);
        auto const run = saves.struck(std::to_string(cause), call);
        INFO(run.err);
        bool const told = contains(run.err, {std::strerror(cause)});
        if (run.status == 0) {
          CHECK(saves.hash_of_run() == saves.hash());
        } else {
          CHECK(run.status == 1);
          CHECK(told);
          CHECK(contains(run.err, {"is not saved"}));
        }
        saves.check_left();
      }
    }
  }
}
