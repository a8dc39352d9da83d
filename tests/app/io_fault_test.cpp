// A run that is killed at a call by which it changes its folder, or for which one fails: what was saved before stays,
// the run goes on to the bits of one that nothing befell, and output is not worth a run. Every call is tried where
// KOZERO_EVERY_CALL is set, else some.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

constexpr int causes[] = {ENOSPC, EIO, EDQUOT, EROFS};
constexpr char const* settings_of_async[] = {"checkpoint.async=false", "checkpoint.async=true"};

std::vector<std::string> with(std::vector<std::string> all, std::vector<std::string> const& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Runs of six updates and three saves in one folder; the second save replaces nothing, the third removes the first.
/// Faults are those of calls on paths with `where` in them.
class Runs {
public:
  explicit Runs(std::string where, std::string const& async = settings_of_async[0])
      : where_(std::move(where)), more_({"run.updates=6", "run.log_every=1", "checkpoint.every=2", "checkpoint.keep=2",
                                         "zero.stage=2", "metrics.tensorboard=true", async}) {
    auto const whole = run({{"IO_FAULT_COUNT", shop_.file("count")}});
    INFO(whole.err);
    REQUIRE(whole.status == 0);
    calls_ = std::stol(shop_.read("count"));
    hash_ = shop_.hash("run");
    REQUIRE(is_done());
  }

  long calls() const { return calls_; }

  /// A new run, that is struck at a call; "+": and from there on.
  ProgramResult struck(std::string const& what, long call, char const* stays = "") const {
    fs::remove_all(shop_.file("run"));
    return run({{"IO_FAULT", what + " " + std::to_string(call) + stays}});
  }

  /// Whether the newest checkpoint is that of the undisturbed run's end.
  bool is_done() const {
    auto const listed = run_program({KOZERO_BINARY, "checkpoint", "ls", shop_.file("run")});
    return contains(listed.out, {hash_ + "  newest"});
  }
  bool has_checkpoint() const {
    auto const is_one = [](auto const& item) {
      return item.path().extension().empty() && fs::exists(item.path() / "checkpoint.h5");
    };
    std::error_code none;
    return std::ranges::any_of(fs::directory_iterator(shop_.file("run/checkpoints"), none), is_one);
  }
  void check_newest_checkpoint() const {
    auto const verified = run_program({KOZERO_BINARY, "checkpoint", "verify", shop_.file("run")});
    INFO(verified.out << verified.err);
    CHECK(verified.status == 0);
  }
  /// A checkpoint that is there is whole, and whatever is there leads to the same end.
  void check_left() const {
    if (has_checkpoint()) check_newest_checkpoint();
    auto const resumed = run_program(shop_.train("run", with(more_, {"--resume", "auto"})));
    INFO(resumed.err);
    CHECK(resumed.status == 0);
    CHECK(hash_of_metrics() == hash_);
  }
  /// Whole lines, of the batches from the first on. How many; the end is one more.
  long lines_of_metrics() const {
    std::string const text = shop_.read("run/metrics.jsonl");
    CHECK((text.empty() || text.back() == '\n'));
    auto const objects = shop_.metrics("run");
    long batch = 0;
    for (auto const& object : objects) {
      if (!object.contains("event")) CHECK(object.at("batch") == ++batch);
    }
    return static_cast<long>(objects.size());
  }
  std::string hash_of_metrics() const { return shop_.hash("run"); }
  std::string const& hash() const { return hash_; }

private:
  ProgramResult run(Program::Environment environment) const {
    environment["LD_PRELOAD"] = KOZERO_IO_FAULT;
    environment["IO_FAULT_WHERE"] = where_;
    return run_program(shop_.train("run", more_), environment);
  }

  Workshop shop_;
  std::string where_;
  std::vector<std::string> more_;
  long calls_ = 0;
  std::string hash_;
};

/// Numbers of calls to strike at: all, or `tries` at even distances, beginning elsewhere for each `kind`.
std::vector<long> some(long calls, long tries, long kind = 0) {
  if (std::getenv("KOZERO_EVERY_CALL")) tries = calls;
  std::vector<long> chosen;
  for (long i = 0; i < tries; ++i) chosen.push_back(1 + i * calls / tries + kind * 7 % std::max(1L, calls / tries));
  return chosen;
}

} // namespace

TEST_CASE("a run killed at any call that changes its folder goes on from what it had saved") { // CASES 31
  long kind = 0;
  for (char const* const async : settings_of_async) {
    Runs const runs("/run", async);
    REQUIRE(runs.calls() > 400);
    ++kind;
    for (long const call : some(runs.calls(), 8, kind)) {
      INFO("call " << call << " of " << runs.calls() << ", " << async);
      CHECK(runs.struck("kill", call).status == 128 + SIGKILL);
      runs.check_left();
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
  for (long const back : some(31, 8)) { // the names change near the end
    long const call = calls + 1 - back;
    INFO("call " << call << " of " << calls);
    CHECK(replace({{"IO_FAULT", "kill " + std::to_string(call)}}) == 128 + SIGKILL);
    CHECK(run_program({KOZERO_BINARY, "checkpoint", "prune", shop.file("run"), "--keep", "9"}).status == 0);
    CHECK(fs::exists(step));
    CHECK(run_program(shop.train("run", with(more, {"--resume", "auto"}))).status == 0);
    CHECK(shop.hash("run") == shop.hash("whole"));
  }
}

TEST_CASE("a run goes on where a call of a save fails, unless it is the last save") { // CASES 37
  long kind = 0;
  for (char const* const async : settings_of_async) {
    Runs const runs("checkpoints", async);
    for (char const* const stays : {"", "+"}) {
      for (int const cause : causes) {
        for (long const call : some(runs.calls(), 2, ++kind)) {
          INFO("call " << call << stays << " of " << runs.calls() << ", " << async << ", " << std::strerror(cause));
          auto const run = runs.struck(std::to_string(cause), call, stays);
          INFO(run.err);
          if (run.status == 0) {
            CHECK(runs.hash_of_metrics() == runs.hash());
            runs.check_newest_checkpoint();
          } else {
            bool const has_begun = run.status == 1;
            CHECK((has_begun || (run.status == 2 && call <= 2))); // the folder is made first, and tried
            CHECK(contains(run.err, {std::strerror(cause), has_begun ? "is not saved" : "checkpoints"}));
            runs.check_left();
          }
        }
      }
    }
  }
}

TEST_CASE("a run that cannot make its folder says why, and is none") {
  Runs const runs("/run");
  constexpr long calls_of_start = 30;
  long kind = 0;
  for (int const cause : causes) {
    for (long const call : some(calls_of_start, 3, ++kind)) {
      INFO("call " << call << ", " << std::strerror(cause));
      auto const run = runs.struck(std::to_string(cause), call);
      INFO(run.err);
      if (run.status != 0) {
        CHECK((run.status == 1 || run.status == 2));
        CHECK(contains(run.err, {std::strerror(cause)}));
        CHECK_FALSE(runs.has_checkpoint());
      }
      runs.check_left();
    }
  }
}

TEST_CASE("metrics that cannot be written end no run, and have whole lines") { // CASES 29
  constexpr long lines = 7;                                                    // six updates and the end
  Runs const runs("metrics.jsonl");
  long kind = 0;
  for (char const* const stays : {"", "+"}) {
    for (int const cause : causes) {
      for (long const call : some(runs.calls(), 2, ++kind)) {
        INFO("call " << call << stays << " of " << runs.calls() << ", " << std::strerror(cause));
        auto const run = runs.struck(std::to_string(cause), call, stays);
        INFO(run.err);
        if (run.status != 0) { // it could not begin
          CHECK(run.status == 1);
          CHECK(contains(run.err, {"metrics.jsonl", std::strerror(cause)}));
          CHECK_FALSE(runs.has_checkpoint());
        } else {
          CHECK(runs.is_done());
          long const written = runs.lines_of_metrics();
          CHECK(contains(run.err, {"lacks its last " + std::to_string(lines - written) + " lines"}) ==
                (written < lines));
          if (*stays == '\0') CHECK(written >= lines - 1); // the end is the last chance
        }
        runs.check_left();
        CHECK(runs.lines_of_metrics() >= 1);
      }
    }
  }
}

TEST_CASE("event files that cannot be written end no run") { // CASES 29
  Runs const runs("events.out");
  long kind = 0;
  for (int const cause : causes) {
    for (long const call : some(runs.calls(), 2, ++kind)) {
      INFO("call " << call << " of " << runs.calls() << ", " << std::strerror(cause));
      auto const run = runs.struck(std::to_string(cause), call);
      INFO(run.err);
      CHECK(run.status == 0);
      CHECK(contains(run.err, {"TensorBoard sees", std::strerror(cause)}));
      CHECK(runs.hash_of_metrics() == runs.hash());
      runs.check_left();
    }
  }
}

TEST_CASE("a log that cannot be written ends no run, and says where lines are missing") { // CASES 29
  Runs const runs("/err");
  REQUIRE(runs.calls() > 20);
  long kind = 0;
  for (char const* const stays : {"", "+"}) {
    for (int const cause : causes) {
      for (long const call : some(runs.calls(), 2, ++kind)) {
        INFO("call " << call << stays << " of " << runs.calls() << ", " << std::strerror(cause));
        auto const run = runs.struck(std::to_string(cause), call, stays);
        INFO(run.err);
        CHECK(run.status == 0);
        CHECK(runs.hash_of_metrics() == runs.hash());
        bool const goes_on = *stays == '\0' && call < runs.calls(); // a full disk stays full
        CHECK(contains(run.err, {"\n(lines are missing here"}) == goes_on);
      }
    }
  }
}
