// How a run that is asked to stop ends: saved after a whole batch, or at once.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

using namespace kozero::test;
using namespace std::chrono_literals;

namespace {

void wait_for_updates(Workshop const& shop, std::string const& run, std::size_t updates) {
  wait_until([&] {
    return std::filesystem::exists(shop.file(run + "/metrics.jsonl")) && shop.metrics(run).size() >= updates;
  });
}

/// A pipe in the place of a deck: a command waits for its text, with MPI and Kokkos up.
class DeckPipe {
public:
  explicit DeckPipe(std::string path) : path_(std::move(path)) { REQUIRE(::mkfifo(path_.c_str(), 0600) == 0); }
  ~DeckPipe() { send(""); }
  DeckPipe(DeckPipe const&) = delete;
  DeckPipe& operator=(DeckPipe const&) = delete;

  /// Comes back when the command reads.
  void wait_for_reader() {
    wait_until([&] { return (end_ = ::open(path_.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; });
  }
  void send(std::string const& text) {
    if (end_ < 0) return;
    CHECK(::write(end_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(end_);
    end_ = -1;
  }

private:
  std::string path_;
  int end_ = -1;
};

/// The command line of `train` with another deck.
std::vector<std::string> with_deck(std::vector<std::string> arguments, std::string const& deck) {
  arguments.at(2) = deck;
  return arguments;
}

/// Keys of a deck, with others that make it spend its time in matrix products.
std::vector<std::string> with_products(std::vector<std::string> keys) {
  keys.insert(keys.end(), {"model.width=384", "model.heads=6", "model.context=128"});
  return keys;
}

/// A run that was stopped has one checkpoint, of its last whole batch, and one line of metrics an update and an end.
void check_saved(Workshop const& shop, std::string const& run) {
  auto const metrics = shop.metrics(run);
  REQUIRE(!metrics.empty());
  std::int64_t const updates = metrics.back().at("updates_applied");
  CHECK(metrics.size() == static_cast<std::size_t>(updates) + 1);
  CHECK(shop.newest_step(run) == updates);
}

/// A run that waits for its deck and was told to stop before it: given the deck, it saves and leaves at its first look.
void check_stops_once_it_may_begin(Workshop const& shop, DeckPipe& deck, Program& program, std::string const& signal) {
  std::this_thread::sleep_for(100ms);
  std::ostringstream text;
  text << std::ifstream(KOZERO_SOURCE_DIR "/inputs/tests/odd.yaml").rdbuf();
  deck.send(text.str());
  auto const stopped = program.wait();
  INFO(stopped.err);
  CHECK(stopped.status == 75);
  CHECK(contains(stopped.err, {"stopped by the signal " + signal + " at update 0"}));
  check_saved(shop, "run");
}

} // namespace

TEST_CASE("TERM saves at an update's end, exits with 75, and the resumed run ends as if nothing had been") { // CASES 19
  Workshop const shop;
  std::vector<std::string> const more = {"run.updates=1500", "zero.stage=2"};
  REQUIRE(run_program(shop.train("whole", more)).status == 0);

  for (int const signal : {SIGTERM, SIGUSR1, SIGHUP}) { // CASES 29
    std::string const run = "stopped " + std::to_string(signal);
    Program program(shop.train(run, more));
    wait_for_updates(shop, run, 20);
    program.signal(signal);
    auto const stopped = program.wait();
    INFO(stopped.err);
    CHECK(stopped.status == 75);
    CHECK(contains(stopped.err, {"--resume"}));
    std::int64_t const updates = shop.metrics(run).back().at("updates_applied");
    CHECK((updates >= 20 && updates < 1500));
    check_saved(shop, run);

    auto resume = more;
    resume.emplace_back("--resume");
    CHECK(run_program(shop.train(run, resume)).status == 0);
    CHECK(shop.hash(run) == shop.hash("whole"));
    CHECK(shop.metrics_but_times(run) == shop.metrics_but_times("whole"));
  }
}

TEST_CASE("under nohup a run does not stop when its terminal goes") {
  Workshop const shop;
  std::vector<std::string> command = {"nohup"};
  auto const train = shop.train("run", {"run.updates=400"});
  command.insert(command.end(), train.begin(), train.end());
  Program program(command);
  wait_for_updates(shop, "run", 20);
  program.signal(SIGHUP);
  CHECK(program.wait().status == 0);
}

TEST_CASE("a terminal that goes again and again interrupts no library's code under nohup") { // CASES 24
  Workshop const shop;
  std::vector<std::string> command = {"nohup"};
  auto const train = shop.train("run", with_products({"run.updates=1000000"}));
  command.insert(command.end(), train.begin(), train.end());
  Program program(command);
  wait_for_updates(shop, "run", 2);
  for (int i = 0; i < 100; ++i) {
    std::this_thread::sleep_for(10ms);
    program.signal(SIGHUP);
  }
  program.signal(SIGTERM);
  auto const stopped = program.wait();
  INFO(stopped.err);
  CHECK(stopped.status == 75);
}

TEST_CASE("an evaluation that a stop has cut off is made by the resumed run") { // CASES 30
  Workshop const shop;
  // Some time between the save and the end of the evaluation, so that the signal comes in between.
  std::string const held_out = shop.write("held out", std::string(200'000, 'x'));
  std::vector<std::string> const more = {"run.updates=12", "evaluate.every=4", "evaluate.batches=1500",
                                         "checkpoint.every=4", "data.validation=" + held_out};
  REQUIRE(run_program(shop.train("whole", more)).status == 0);
  for (int const signal : {SIGTERM, SIGKILL}) {
    std::string const run = "stopped " + std::to_string(signal);
    Program program(shop.train(run, more));
    wait_until([&] { return std::filesystem::exists(shop.file(run + "/checkpoints/latest")); });
    program.signal(signal);
    auto const stopped = program.wait();
    INFO(stopped.err);
    CHECK(stopped.status == (signal == SIGKILL ? 128 + SIGKILL : 75));
    for (auto const& line : shop.metrics(run)) CHECK(!line.contains("batch") == line.contains("event"));
    REQUIRE(!contains(shop.read(run + "/metrics.jsonl"), {"\"val_loss\""}));

    auto resume = more;
    resume.emplace_back("--resume");
    CHECK(run_program(shop.train(run, resume)).status == 0);
    CHECK(shop.metrics_but_times(run) == shop.metrics_but_times("whole"));
  }
}

TEST_CASE("a run that is at its end and evaluated is not evaluated twice") { // CASES 30
  Workshop const shop;
  REQUIRE(run_program(shop.train("run")).status == 0);
  auto const before = shop.metrics_but_times("run");
  REQUIRE(run_program(shop.train("run", {"--resume"})).status == 0);
  auto const after = shop.metrics_but_times("run");
  CHECK(after.size() == before.size());
}

TEST_CASE("a request told to the launcher and to all ranks is one request") { // CASES 25
  Workshop const shop;
  for (int const ranks : {1, 2, 3}) {
    std::string const run = "on " + std::to_string(ranks);
    // MPICH's launcher may lose the ranks' status when a signal is told to it, so each writes its own.
    std::vector<std::string> rank = {"sh", "-c", R"(trap : TERM; "$@"; echo $? >"$0.$PMI_RANK")", shop.file(run)};
    auto const train = shop.train(run, {"run.updates=1000000", "zero.stage=2"});
    rank.insert(rank.end(), train.begin(), train.end());
    Program program(on_ranks(ranks, rank));
    wait_for_updates(shop, run, 2);
    program.signal_all(SIGTERM);
    auto const stopped = program.wait();
    INFO(stopped.err);
    CHECK(contains(stopped.err, {"stopped by the signal TERM"}));
    for (int i = 0; i < ranks; ++i) CHECK(shop.read(run + '.' + std::to_string(i)) == "75\n");
    check_saved(shop, run);
  }
}

TEST_CASE("different signals at a time are one request") { // CASES 25
  Workshop const shop;
  Program program(shop.train("run", {"run.updates=1000000"}));
  wait_for_updates(shop, "run", 1);
  // All are there before the run's next look at them.
  program.signal(SIGSTOP);
  for (int const signal : {SIGTERM, SIGINT, SIGUSR1, SIGTERM}) program.signal(signal);
  program.signal(SIGCONT);
  auto const stopped = program.wait();
  INFO(stopped.err);
  CHECK(stopped.status == 75);
  check_saved(shop, "run");
}

TEST_CASE("a second Ctrl-C ends a run at once") {
  Workshop const shop;
  DeckPipe deck(shop.file("deck"));
  Program program(with_deck(shop.train("run"), shop.file("deck")));
  deck.wait_for_reader();
  program.signal(SIGTERM);
  std::this_thread::sleep_for(4s); // a copy of the first would have come by now
  program.signal(SIGINT);
  CHECK(program.wait(10s).status == 1);
  CHECK(!std::filesystem::exists(shop.file("run")));
}

TEST_CASE("a scheduler that tells again, later and otherwise, does not end a run unsaved") { // CASES 25
  Workshop const shop;
  DeckPipe deck(shop.file("deck"));
  Program program(with_deck(shop.train("run"), shop.file("deck")));
  deck.wait_for_reader();
  program.signal(SIGUSR1);
  std::this_thread::sleep_for(4s);
  program.signal(SIGTERM);
  check_stops_once_it_may_begin(shop, deck, program, "USR1");
}

TEST_CASE("a request before training begins is not lost") { // CASES 26
  Workshop const shop;
  DeckPipe deck(shop.file("deck"));
  Program program(with_deck(shop.train("run"), shop.file("deck")));
  deck.wait_for_reader();
  program.signal(SIGINT);
  check_stops_once_it_may_begin(shop, deck, program, "INT");
}

TEST_CASE("a request after the last save does not spoil the end") {
  Workshop const shop;
  for (int delay = 0; delay < 6; ++delay) {
    std::string const run = "run " + std::to_string(delay);
    Program program(shop.train(run));
    wait_until([&] { return std::filesystem::exists(shop.file(run + "/checkpoints/latest")); });
    std::this_thread::sleep_for(2ms * delay);
    program.signal(SIGTERM);
    auto const ended = program.wait();
    INFO(ended.err);
    CHECK(ended.status == 0);
    check_saved(shop, run);
  }
}

TEST_CASE("a signal ends what does not train") {
  Workshop const shop;
  for (char const* command : {"check", "selftest"}) {
    INFO(command);
    DeckPipe deck(shop.file(command));
    Program program({KOZERO_BINARY, command, shop.file(command)});
    deck.wait_for_reader();
    program.signal(SIGTERM);
    CHECK(program.wait(10s).status == 128 + SIGTERM);
  }
}

TEST_CASE("signals inside matrix products leave a checkpoint that can be read") { // CASES 24
  constexpr int tries = 20;
  Workshop const shop;
  for (int i = 0; i < tries; ++i) {
    std::string const run = "run " + std::to_string(i);
    auto more = with_products({"run.updates=1000000"});
    Program program(shop.train(run, more));
    wait_for_updates(shop, run, 0);
    std::mt19937 random(static_cast<unsigned>(i));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500'000));
    program.signal(i % 2 == 0 ? SIGTERM : SIGUSR1);
    auto const stopped = program.wait();
    INFO("try " << i << ": " << stopped.err);
    REQUIRE(stopped.status == 75);
    check_saved(shop, run);
    // A run at its end reads the checkpoint, compares the hash of what it read, and leaves.
    more.front() = "run.updates=" + std::to_string(std::max<std::int64_t>(shop.newest_step(run), 1));
    more.emplace_back("--resume");
    auto const read = run_program(shop.train(run, more));
    INFO(read.err);
    CHECK(read.status == 0);
    std::filesystem::remove_all(shop.file(run));
  }
}
