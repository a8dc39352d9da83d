// Ranks that are stuck, lost or slow: the run ends soon and says who, or goes on.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace kozero::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> const endless = {"run.updates=1000000000", "zero.stage=2", "run.stall_limit=3s"};

/// "RANK KERNEL WHAT" for tests/support/fault_tool.cpp.
Program::Environment with_fault(std::string const& fault) {
  return {{"FAULT", fault},
          {"LD_PRELOAD", KOZERO_FAULT_TOOL},
          {"KOKKOS_PROFILE_LIBRARY", KOZERO_FAULT_TOOL},
          {"KOKKOS_TOOLS_LIBS", KOZERO_FAULT_TOOL}};
}

enum class Launcher {
  usual,            // MPICH's: it ends all ranks when one dies
  lets_others_live, // as srun does: a rank's end is seen when all have ended
};

/// A command on some ranks, each of which writes its process' number into PATH.RANK.
std::vector<std::string> with_numbers(int ranks, std::vector<std::string> const& command, std::string const& path,
                                      Launcher launcher) {
  char const* const replaced = R"(echo $$ >"$0.$PMI_RANK"; exec "$@")";
  char const* const waited_for = R"sh(
    "$@" & echo $! >"$0.$PMI_RANK"; wait $!; status=$?
    for number in "$0".*; do while kill -0 "$(cat "$number")" 2>/dev/null; do sleep 0.05; done; done
    exit $status)sh";
  bool const usual = launcher == Launcher::usual;
  std::vector<std::string> all = {"sh", "-c", usual ? replaced : waited_for, path};
  all.insert(all.end(), command.begin(), command.end());
  all = on_ranks(ranks, all);
  if (!usual) all.insert(all.begin() + 1, "-disable-auto-cleanup");
  return all;
}

class Run {
public:
  Run(int ranks, std::vector<std::string> const& more, Launcher launcher = Launcher::usual,
      Program::Environment const& environment = {})
      : ranks_(ranks),
        program_(with_numbers(ranks, shop_.train("run", more), shop_.file("number"), launcher), environment) {}

  int process(int rank) const { return std::stoi(shop_.read("number." + std::to_string(rank))); }
  void signal(int rank, int number) const { ::kill(process(rank), number); }

  void wait_for_updates(std::size_t updates) const {
    auto const start = std::chrono::steady_clock::now();
    while (!std::filesystem::exists(shop_.file("run/metrics.jsonl")) || shop_.metrics("run").size() < updates) {
      if (std::chrono::steady_clock::now() - start > 60s) throw std::runtime_error("nothing happens");
      std::this_thread::sleep_for(5ms);
    }
  }

  /// Of all ranks, and of the launcher where it is still there.
  ProgramResult wait(std::chrono::seconds at_most) {
    auto const start = std::chrono::steady_clock::now();
    auto const result = program_.wait(at_most);
    while (lives() && std::chrono::steady_clock::now() - start < at_most) std::this_thread::sleep_for(20ms);
    CHECK(!lives());
    return result;
  }

  Workshop const& shop() const { return shop_; }
  Program& program() { return program_; }

private:
  bool lives() const {
    for (int rank = 0; rank < ranks_; ++rank) {
      std::ifstream stat("/proc/" + std::to_string(process(rank)) + "/stat");
      std::string text;
      std::getline(stat, text);
      if (!text.empty() && text.find(") Z ") == std::string::npos) return true;
    }
    return false;
  }

  Workshop shop_;
  int ranks_;
  Program program_;
};

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

} // namespace

TEST_CASE("a stopped rank ends the run within the limit and some seconds, by one message") { // CASES 27
  for (int const rank : {0, 1, 2}) {
    Run run(3, endless);
    run.wait_for_updates(3);
    run.signal(rank, SIGSTOP);
    auto const ended = run.wait(15s);
    INFO(ended.err);
    CHECK(ended.status != 0);
    CHECK(contains(ended.err, {"kozero: " + rank_text(rank) + " on host ", "has not been heard of for ", "number "}));
    CHECK(times(ended.err, "kozero: ") == 1);
  }
}

TEST_CASE("a suspended job goes on, and ends as if nothing had been") { // CASES 27
  std::vector<std::string> const more = {"run.updates=500", "zero.stage=2", "run.stall_limit=3s"};
  Workshop const shop;
  REQUIRE(run_program(on_ranks(3, shop.train("whole", more))).status == 0);
  Run run(3, more);
  run.wait_for_updates(3);
  run.program().signal_all(SIGSTOP);
  std::this_thread::sleep_for(6s);
  CHECK(run.shop().metrics("run").size() < 500);
  run.program().signal_all(SIGCONT);
  auto const ended = run.wait(60s);
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(run.shop().hash("run") == shop.hash("whole"));
}

TEST_CASE("without a limit a stopped rank is waited for") {
  Run run(2, {"run.updates=2000", "zero.stage=2", "run.stall_limit=none"});
  run.wait_for_updates(3);
  run.signal(1, SIGSTOP);
  std::this_thread::sleep_for(5s);
  run.signal(1, SIGCONT);
  CHECK(run.wait(60s).status == 0);
}

TEST_CASE("a rank in an endless loop ends the run") { // CASES 27
  for (int const ranks : {1, 3}) {
    int const rank = ranks / 2;
    Run run(ranks, endless, Launcher::usual, with_fault(std::to_string(rank) + " 500 loops"));
    auto const ended = run.wait(30s);
    INFO(ended.err);
    CHECK(ended.status == 1);
    CHECK(contains(ended.err, {"kozero: " + rank_text(rank) + " on host ", "has not got on for 3.0s"}));
    CHECK(times(ended.err, "kozero: ") == 1);
  }
}

TEST_CASE("a rank that dies ends the run where the launcher would let the others live") { // CASES 18
  for (int const rank : {0, 1, 2}) {
    Run run(3, endless, Launcher::lets_others_live);
    run.wait_for_updates(3);
    run.signal(rank, SIGKILL);
    auto const ended = run.wait(15s);
    INFO(ended.err);
    CHECK(ended.status != 0);
    CHECK(contains(ended.err, {"kozero: " + rank_text(rank) + " on host ", "is gone"}));
    CHECK(times(ended.err, "kozero: ") == 1);
  }
}

TEST_CASE("a rank that leaves or crashes in a kernel ends the run likewise") { // CASES 18
  for (char const* what : {"exits", "crashes"}) {
    Run run(3, endless, Launcher::lets_others_live, with_fault(std::string("1 500 ") + what));
    auto const ended = run.wait(30s);
    INFO(what << ": " << ended.err);
    CHECK(ended.status != 0);
    CHECK(contains(ended.err, {"kozero: rank 1 on host ", "is gone"}));
  }
}

TEST_CASE("ranks whose launcher was killed do not live on") { // CASES 27
  Run run(3, endless);
  run.wait_for_updates(3);
  std::ifstream status("/proc/" + std::to_string(run.process(0)) + "/status");
  int proxy = 0;
  for (std::string word; status >> word;) {
    if (word == "PPid:") status >> proxy;
  }
  REQUIRE(proxy > 1);
  REQUIRE(::kill(proxy, SIGKILL) == 0);
  CHECK(run.wait(15s).status != 0);
}

TEST_CASE("a long save to a slow disk is no stall") {
  Run run(2, {"run.updates=3", "zero.stage=1", "run.stall_limit=3s"}, Launcher::usual, with_fault("1 1 writes_slowly"));
  auto const start = std::chrono::steady_clock::now();
  auto const ended = run.wait(60s);
  INFO(ended.err);
  CHECK(ended.status == 0);
  CHECK(std::chrono::steady_clock::now() - start > 5s); // long enough to be taken for one
}

TEST_CASE("a slow rank is named once, and the run goes on") {
  Run run(3, {"run.updates=1000000000", "zero.stage=2", "run.time_limit=18s"}, Launcher::usual,
          with_fault("1 1 is_slow"));
  auto const ended = run.wait(60s);
  INFO(ended.err);
  CHECK(ended.status == 75);
  CHECK(times(ended.err, "rank 1 on host ") == 1);
  CHECK(contains(ended.err, {"is slow ("}));
}
