// The program as its users call it: what it prints, and its exit status.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

using namespace kozero::test;

namespace {

std::string const odd = KOZERO_SOURCE_DIR "/inputs/tests/odd.yaml";

/// A deck with faults in lines 2, 4, 5 and 6.
constexpr char const* bad_deck = "run:\n"
                                 "  updatse: 5\n"
                                 "optimizer:\n"
                                 "  lr: -1\n"
                                 "  gradient_cliping: 1\n"
                                 "  eps: 1e-8x\n"
                                 "data:\n"
                                 "  train: text\n";

} // namespace

TEST_CASE("--version and --help end well, a wrong command line with status 2") {
  auto const version = run_program({KOZERO_BINARY, "--version"});
  CHECK(version.status == 0);
  CHECK(version.out.starts_with(KOZERO_VERSION "\n"));
  CHECK(contains(version.out, {"Kokkos ", "HDF5 "}));
  auto const help = run_program({KOZERO_BINARY, "--help"});
  CHECK(help.status == 0);
  CHECK(contains(help.out, {"train", "check", "plan", "generate", "selftest", "bench"}));
  for (std::vector<std::string> const& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"fly"},
                                             {"train"},
                                             {"check"},
                                             {"plan"},
                                             {"generate"},
                                             {"bench"},
                                             {"bench", "fly"},
                                             {"train", odd, "--fly"},
                                             {"train", odd, "--resume", "--overwrite"}}) {
    std::vector<std::string> all = {KOZERO_BINARY};
    all.insert(all.end(), arguments.begin(), arguments.end());
    INFO(arguments.size());
    auto const wrong = run_program(all);
    CHECK(wrong.status == 2);
    CHECK(!wrong.err.empty());
  }
}

TEST_CASE("check prints the resolved deck, which is a deck itself") {
  Workshop const shop;
  auto const first = run_program({KOZERO_BINARY, "check", odd, "optimizer.lr=0.5"});
  CHECK(first.status == 0);
  CHECK(contains(first.out, {"\noptimizer:\n", "lr: 0.5", "weight_decay: 0.1", "width: 21", "odd.yaml"}));
  auto const second = run_program({KOZERO_BINARY, "check", shop.write("resolved.yaml", first.out)});
  CHECK(second.status == 0);
  auto const without_comments = [](std::string const& text) {
    std::istringstream lines(text);
    std::string all;
    for (std::string line; std::getline(lines, line);) {
      line = line.substr(0, line.find('#'));
      line = line.substr(0, line.find_last_not_of(' ') + 1);
      if (!line.empty()) all += line + '\n';
    }
    return all;
  };
  CHECK(without_comments(second.out) == without_comments(first.out));
}

TEST_CASE("check --reference prints doc/deck.md") {
  auto const reference = run_program({KOZERO_BINARY, "check", "--reference"});
  CHECK(reference.status == 0);
  std::ostringstream page;
  page << std::ifstream(KOZERO_SOURCE_DIR "/doc/deck.md", std::ios::binary).rdbuf();
  CHECK((reference.out == page.str()));
}

TEST_CASE("a bad deck is refused with all its faults, by check and by train") {
  Workshop const shop;
  std::string const deck = shop.write("deck.yaml", bad_deck);
  for (char const* command : {"check", "train"}) {
    auto const refused = run_program({KOZERO_BINARY, command, deck, "batch.mikro=3", "run.dir=" + shop.file("run")});
    INFO(refused.err);
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, {"deck.yaml:2:3: ", "'updates'", "deck.yaml:4:7: ", "deck.yaml:5:3: ",
                                 "deck.yaml:6:8: ", "command line: batch.mikro"}));
  }
  CHECK(!std::filesystem::exists(shop.file("run")));
}

TEST_CASE("missing files are named, with status 2") {
  Workshop const shop;
  auto const no_deck = run_program({KOZERO_BINARY, "train", shop.file("none.yaml")});
  CHECK(no_deck.status == 2);
  CHECK(contains(no_deck.err, {"none.yaml", "No such file"}));
  auto const no_data = run_program(shop.train("run", {"data.train=" + shop.file("none.bin")}));
  CHECK(no_data.status == 2);
  CHECK(contains(no_data.err, {"none.bin"}));
  CHECK(!std::filesystem::exists(shop.file("run")));
  auto const no_run = run_program({KOZERO_BINARY, "generate", "--checkpoint", shop.file("none")});
  CHECK(no_run.status != 0);
  CHECK(contains(no_run.err, {shop.file("none")}));
}

TEST_CASE("a dry run prints the table and writes nothing") {
  Workshop const shop;
  auto const dry = run_program(shop.train("run", {"--dry-run"}));
  CHECK(dry.status == 0);
  CHECK(contains(dry.err, {"11697 parameters", "batch ", "Kokkos", "dry run"}));
  std::vector<std::string> names;
  for (auto const& item : std::filesystem::recursive_directory_iterator(shop.file(""))) {
    names.push_back(item.path().filename());
  }
  CHECK(names == std::vector<std::string>{"text"});
}

TEST_CASE("processes that do not know of each other are told from ranks") {
  Workshop const shop;
  auto const alone = run_program(shop.train("run"), {{"SLURM_STEP_NUM_TASKS", "4"}});
  CHECK(alone.status == 1);
  CHECK(contains(alone.err, {"started 4 processes but MPI sees 1", "SLURM_STEP_NUM_TASKS", "; use srun"}));
  CHECK(!std::filesystem::exists(shop.file("run")));
  // In a batch script there may be more tasks than this program has.
  CHECK(run_program(shop.train("run", {"--dry-run"}), {{"SLURM_NTASKS", "4"}}).status == 0);
}

TEST_CASE("several ranks tell of a bad deck once, and check prints once") {
  Workshop const shop;
  std::string const deck = shop.write("deck.yaml", bad_deck);
  auto const start = std::chrono::steady_clock::now();
  auto const refused = run_program(on_ranks(2, {KOZERO_BINARY, "train", deck}));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
  CHECK(refused.status == 2);
  CHECK(times(refused.err, "deck.yaml:2:3: ") == 1);
  auto const check = run_program(on_ranks(2, {KOZERO_BINARY, "check", odd}));
  CHECK(check.status == 0);
  CHECK(times(check.out, "\noptimizer:\n") == 1);
}

TEST_CASE("a file that one rank lacks is told with that rank and its host") { // CASES 43
  Workshop const shop;
  std::vector<std::string> arguments = on_ranks(1, shop.train("run"));
  arguments.emplace_back(":");
  auto const other = shop.train("run", {"data.train=" + shop.file("nowhere")});
  arguments.insert(arguments.end(), {KOZERO_MPIEXEC_N, "1"});
  arguments.insert(arguments.end(), other.begin(), other.end());
  auto const refused = run_program(arguments);
  INFO(refused.err);
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, {"rank 1 on host ", shop.file("nowhere"), "No such file"}));
}

TEST_CASE("a number below its range is refused in a line") { // CASES 43
  auto const refused = run_program({KOZERO_BINARY, "generate", "--checkpoint", "x", "--top-k", "-1"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, {"--top-k", "-1 is negative"}));
  CHECK(refused.err.size() < 300);
}

TEST_CASE("a rank that fails while MPI and Kokkos start ends all ranks, and says why") { // CASES 45
  Workshop const shop;
  auto const run = shop.train("run");
  std::vector<std::string> const other = {"env", "KOZERO_HOST_TARGET=mmx"};
  for (bool const first : {true, false}) {
    std::vector<std::string> arguments = {KOZERO_MPIEXEC, KOZERO_MPIEXEC_N, "1"};
    auto const add = [&](std::vector<std::string> const& more) {
      arguments.insert(arguments.end(), more.begin(), more.end());
    };
    if (first) add(other);
    add(run);
    add({":", KOZERO_MPIEXEC_N, "1"});
    if (!first) add(other);
    add(run);
    auto const result = Program(arguments).wait(std::chrono::seconds(20));
    INFO(result.err);
    CHECK(result.status != 0);
    CHECK(times(result.err, "KOZERO_HOST_TARGET is 'mmx'") == 1);
    CHECK(contains(result.err, {first ? "rank 0 on host " : "rank 1 on host ", "x86-64, avx2 or avx512"}));
    CHECK(!std::filesystem::exists(shop.file("run")));
  }
}

#ifdef __x86_64__
TEST_CASE("host loops are held to the target that the environment names") { // CASES 55
  auto const bench = [](char const* target) {
    return run_program({KOZERO_BINARY, "bench", "adam", "--params", "1k", "--quick", "--json"},
                       {{"KOZERO_HOST_TARGET", target}});
  };
  auto const held = bench("x86-64");
  REQUIRE(held.status == 0);
  CHECK(nlohmann::json::parse(held.out).at("isa") == "x86-64");
  for (char const* unknown : {"", "AVX2", "sse"}) {
    auto const refused = bench(unknown);
    CHECK(refused.status == 1);
    CHECK(contains(refused.err, {fmt::format("KOZERO_HOST_TARGET is '{}' (unknown); set it to", unknown)}));
  }
}
#endif
