// kozero selftest as its users call it.
#include "app/cli.hpp"

#include "support/catch.hpp"

#include <filesystem>

using namespace kozero::test;

namespace {

std::vector<std::string> selftest(Workshop const& shop, std::vector<std::string> const& more = {}) {
  auto arguments = shop.train("run", more);
  arguments[1] = "selftest";
  return arguments;
}

constexpr int combinations = 1 + 3 * (3 + 2) + 2;

} // namespace

TEST_CASE("the self-test passes on 1, 2 and 3 ranks, tells of all combinations once, and writes nothing") {
  Workshop const shop;
  for (int const ranks : {1, 2, 3}) {
    for (char const* compute : {"precision.compute=fp32", "precision.compute=bf16"}) {
      auto const arguments = selftest(shop, {compute, "batch.accumulate=" + std::to_string(ranks)});
      auto const result = run_program(ranks == 1 ? arguments : on_ranks(ranks, arguments));
      INFO(result.out << result.err);
      CHECK(result.status == 0);
      CHECK(times(result.out, "\n") == 1 + combinations + 1);
      CHECK(times(result.out, "from 2") == 6);
      CHECK(contains(result.out, {"selftest passed: all 18 combinations"}));
      CHECK(times(result.out, " to rounding") == (ranks == 1 ? 0 : 2));
      CHECK(times(result.err, "11697 parameters") == 1);
      CHECK(result.err.find('\r') == std::string::npos); // no progress line: standard error is no terminal
    }
  }
  std::vector<std::string> names;
  for (auto const& item : std::filesystem::recursive_directory_iterator(shop.file(""))) {
    names.push_back(item.path().filename());
  }
  CHECK(names == std::vector<std::string>{"text"});
}

TEST_CASE("with one tree of sums all stages have the same bits, and three ranks are refused") {
  Workshop const shop;
  auto const arguments = selftest(shop, {"run.reproducibility=topology", "batch.accumulate=3"});
  auto const result = run_program(on_ranks(2, arguments));
  INFO(result.out << result.err);
  CHECK(result.status == 0);
  CHECK(contains(result.out, {"selftest passed: all 18 combinations"}));
  CHECK(times(result.out, " to rounding") == 0);
  auto const refused = run_program(on_ranks(3, arguments));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, {"run.reproducibility: topology is not kept on 3 ranks", "start 1, 2, 4, 8"}));
}

TEST_CASE("the self-test shows on request where it is, and its --updates") {
  Workshop const shop;
  auto const result = run_program(selftest(shop, {"--updates", "3"}), {{"KOZERO_PROGRESS", "1"}});
  CHECK(result.status == 0);
  CHECK(contains(result.err, {"3 updates a combination", "\rcombination 18 of 18: stage 3"}));
  CHECK(contains(result.out, {"from 4"})); // the delay that starts past the end
  CHECK(run_program(selftest(shop, {"--updates", "2"})).status == 2);
}

TEST_CASE("a self-test with no room has status 1, of a bad deck 2") {
  Workshop const shop;
  auto const small = run_program(on_ranks(2, selftest(shop, {"memory.device_limit=10KiB"})));
  INFO(small.out << small.err);
  CHECK(small.status == 1);
  CHECK(times(small.out, "does not fit: device memory") == combinations);
  CHECK(times(small.out, "nothing was compared") == 1);
  auto const bad = run_program(on_ranks(2, selftest(shop, {"batch.mikro=1"})));
  CHECK(bad.status == 2);
  CHECK(times(bad.err, "batch.mikro") == 1);
}
