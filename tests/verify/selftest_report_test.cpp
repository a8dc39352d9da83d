// What the self-test compares, and that it sees a difference of one bit.
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include "verify/selftest_report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

using namespace kozero;
using kozero::test::contains;

namespace {

constexpr std::int64_t updates = 4;
using Outcomes = std::vector<SelftestOutcome>;

std::vector<SelftestCase> cases_of(std::int64_t accumulate, ComputeType compute = ComputeType::fp32) {
  Config deck;
  deck.data.train = "text";
  deck.precision.compute = compute;
  return selftest_cases(deck, accumulate, updates);
}

/// Runs as they should be: a delay changes what comes after batch 2, another order of summing the last bits.
Outcomes sound_outcomes(std::vector<SelftestCase> const& cases) {
  Outcomes outcomes;
  for (auto const& run : cases) {
    double const late = run.kind.delayed ? 1.25 : 1;
    double const order = run.kind.order == SelftestClass::SumOrder::ranks_first ? 1 + 1e-7 : 1;
    std::string const hash = std::string(run.kind.delayed ? "d" : "s") + (order == 1 ? "0" : "1") + "23456789";
    outcomes.push_back({.result = {.losses = {5, 4 * order, 3 * late * order, 2.5 * late * order, 2 * late * order},
                                   .norms = {1.5 * order, 1.25 * order, 1.125 * late * order, 1.0625 * late * order},
                                   .hash = hash}});
  }
  return outcomes;
}

void nudge(double& number) { number = std::nextafter(number, 100.0); }

/// Everything that a run leaves, each by one bit or digit.
std::vector<std::pair<std::string, std::function<void(SelftestResult&)>>> all_nudges() {
  std::vector<std::pair<std::string, std::function<void(SelftestResult&)>>> all;
  for (std::size_t b = 0; b < updates; ++b) {
    all.emplace_back("in loss of batch " + std::to_string(b + 1), [b](SelftestResult& r) { nudge(r.losses[b]); });
    all.emplace_back("in norm of batch " + std::to_string(b + 1), [b](SelftestResult& r) { nudge(r.norms[b]); });
  }
  all.emplace_back("in loss at the end", [](SelftestResult& r) { nudge(r.losses.back()); });
  all.emplace_back("in the state", [](SelftestResult& r) { r.hash.back() = 'x'; });
  return all;
}

/// The rows, from 1, that are found to differ.
std::vector<std::size_t> differing(std::vector<SelftestFinding> const& findings) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].kind == SelftestFinding::Kind::differs) rows.push_back(i + 1);
  }
  return rows;
}

bool passes(std::vector<SelftestCase> const& cases, Outcomes const& outcomes) {
  return judge_selftest(compare_selftest(cases, outcomes)).passed;
}

} // namespace

TEST_CASE("every legal combination is there once, and in the class that doc/numerics.md says") {
  for (std::int64_t const accumulate : {1, 4}) {
    std::vector<std::string> rows;
    for (auto const& run : cases_of(accumulate)) {
      bool const ranks_first = run.kind.order == SelftestClass::SumOrder::ranks_first;
      auto const& [stage, offload, delayed, recompute] = run.columns;
      rows.push_back(stage + ' ' + offload + ' ' + delayed + ' ' + recompute + (ranks_first ? " ranks" : " micro") +
                     (run.kind.delayed ? " late" : ""));
      CHECK(std::to_string(run.config.zero.stage) == stage);
    }
    std::string const high = accumulate == 1 ? " micro" : " ranks"; // of stages 2 and 3
    std::vector<std::string> wanted = {"0 none no none micro"};
    for (std::string const stage : {"1", "2", "3"}) {
      for (char const* offload : {" none", " host 0.5", " host 1"}) {
        wanted.push_back(stage + offload + " no none" + (stage == "1" ? " micro" : high));
      }
    }
    for (std::string const stage : {"1", "2", "3"}) {
      for (char const* offload : {" host 0.5", " host 1"}) {
        wanted.push_back(stage + offload + " from 2 none" + (stage == "1" ? " micro" : high) + " late");
      }
    }
    wanted.push_back("3 host 0.5 from 5 none" + high); // never comes to it
    wanted.push_back("3 none no unit" + high);
    CHECK(rows == wanted);
  }
}

TEST_CASE("a deck's own stage, offload and recompute do not matter, but recompute is the other way round") {
  Config deck;
  deck.data.train = "text";
  deck.zero = {3};
  deck.offload = {.optimizer = OffloadTarget::host, .ratio = 0.25, .delayed_update = {1}};
  deck.activations.recompute = Recompute::unit;
  auto const cases = selftest_cases(deck, 1, updates);
  REQUIRE(cases.size() == cases_of(1).size());
  CHECK(cases.front().config.offload == OffloadConfig{});
  CHECK(cases.front().config.activations.recompute == Recompute::unit);
  CHECK(cases.back().config.activations.recompute == Recompute::none);
}

TEST_CASE("runs as they should be pass, each with a reference before it") {
  for (std::int64_t const accumulate : {1, 4}) {
    auto const cases = cases_of(accumulate);
    auto const findings = compare_selftest(cases, sound_outcomes(cases));
    CHECK(findings[0].kind == SelftestFinding::Kind::nothing_before);
    for (std::size_t i = 1; i < findings.size(); ++i) CHECK(findings[i].kind == SelftestFinding::Kind::agrees);
    CHECK(findings[1].text == "= row 1");
    CHECK(findings[4].text == (accumulate == 1 ? "= row 1" : "group 2, as row 1 to rounding"));
    CHECK(findings[12].text ==
          (accumulate == 1 ? "= row 11" : "group 4, as row 11 to rounding, = row 5 up to batch 2"));
    auto const verdict = judge_selftest(findings);
    CHECK(verdict.passed);
    CHECK(contains(verdict.text, {"all 18 combinations"}));
  }
}

TEST_CASE("one bit in any number of any run is seen, and told where it is") {
  auto const cases = cases_of(1);
  auto const sound = sound_outcomes(cases);
  for (auto const& [where, change] : all_nudges()) {
    for (std::size_t row = 1; row <= cases.size(); ++row) {
      if (row == 1 || row == 11) continue; // the first of their groups, below
      auto outcomes = sound;
      change(outcomes[row - 1].result);
      auto const findings = compare_selftest(cases, outcomes);
      INFO(where << " of row " << row);
      CHECK(differing(findings) == std::vector<std::size_t>{row});
      CHECK(contains(findings[row - 1].text, {"DIFFERS FROM row ", where}));
      auto const verdict = judge_selftest(findings);
      CHECK(!verdict.passed);
      CHECK(contains(verdict.text, {"FAILED", "1 of 18"}));
      CHECK(contains(selftest_table(cases, outcomes, findings), {findings[row - 1].text}));
    }
    auto outcomes = sound;
    change(outcomes[0].result);
    CHECK(differing(compare_selftest(cases, outcomes)).size() >= 11); // its whole group
  }
}

TEST_CASE("a delay may not change what comes before it") {
  auto const cases = cases_of(1);
  for (std::size_t batch = 0; batch < 2; ++batch) {
    auto outcomes = sound_outcomes(cases);
    for (std::size_t row = 11; row <= 16; ++row) nudge(outcomes[row - 1].result.losses[batch]);
    CHECK(differing(compare_selftest(cases, outcomes)) == std::vector<std::size_t>{11});
  }
}

TEST_CASE("sums in another order agree to rounding, and no further") {
  struct Change {
    ComputeType compute;
    double relative; // of the norm of batch 1
    bool passes;
  };
  for (Change const change : {Change{ComputeType::fp32, 0.9e-5, true}, Change{ComputeType::fp32, 1.1e-5, false},
                              Change{ComputeType::bf16, 1.9e-2, true}, Change{ComputeType::bf16, 2.1e-2, false}}) {
    auto const cases = cases_of(4, change.compute);
    auto const with = [&](std::function<void(SelftestResult&)> const& tamper) {
      auto outcomes = sound_outcomes(cases);
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (cases[i].kind.order == SelftestClass::SumOrder::ranks_first) tamper(outcomes[i].result);
      }
      return compare_selftest(cases, outcomes);
    };
    INFO("relative " << change.relative);
    auto const norm = with([&](SelftestResult& result) { result.norms[0] = 1.5 * (1 + change.relative); });
    CHECK(norm[4].kind == (change.passes ? SelftestFinding::Kind::agrees : SelftestFinding::Kind::differs));
    auto const loss = with([&](SelftestResult& result) { nudge(result.losses[0]); });
    CHECK(contains(loss[4].text, {"DIFFERS FROM row 1 in loss of batch 1"}));
  }
}

TEST_CASE("in fp16 orders of summing may overflow in one alone, and are compared up to there") {
  double const inf = std::numeric_limits<double>::infinity();
  for (auto const compute : {ComputeType::fp16, ComputeType::bf16}) {
    auto const cases = cases_of(4, compute);
    auto outcomes = sound_outcomes(cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (cases[i].kind.order == SelftestClass::SumOrder::ranks_first) continue;
      outcomes[i].result.norms[1] = inf;
      outcomes[i].result.losses[2] = 4; // the parameters are still the same
    }
    CHECK(passes(cases, outcomes) == (compute == ComputeType::fp16));
    outcomes[2].result.norms[1] = 1.25; // one of a class
    CHECK(!passes(cases, outcomes));
  }
  // All alike, though the sum of an Inf and another may be a NaN.
  auto const cases = cases_of(4, ComputeType::bf16);
  auto outcomes = sound_outcomes(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) outcomes[i].result.norms[1] = i % 2 == 0 ? inf : std::nan("");
  CHECK(passes(cases, outcomes));
}

TEST_CASE("what does not fit is told and no fault; what failed is one, and so is having compared nothing") {
  auto const cases = cases_of(1);
  auto outcomes = sound_outcomes(cases);
  outcomes[0] = {.kind = SelftestOutcome::Kind::does_not_fit, .message = "no room"};
  auto findings = compare_selftest(cases, outcomes);
  CHECK(findings[1].text == "group 1"); // the next one takes its place
  CHECK(judge_selftest(findings).passed);
  CHECK(contains(judge_selftest(findings).text, {"17 of 18", "1 do not fit"}));
  CHECK(contains(selftest_table(cases, outcomes, findings), {"does not fit: no room"}));

  outcomes[5] = {.kind = SelftestOutcome::Kind::failed, .message = "ranks disagree"};
  findings = compare_selftest(cases, outcomes);
  CHECK(!judge_selftest(findings).passed);
  CHECK(contains(selftest_table(cases, outcomes, findings), {"FAILED: ranks disagree"}));

  for (std::size_t i = 0; i + 1 < outcomes.size(); ++i) outcomes[i] = outcomes[0];
  findings = compare_selftest(cases, outcomes);
  CHECK(!judge_selftest(findings).passed);
  CHECK(contains(judge_selftest(findings).text, {"nothing was compared", "17 of 18"}));
}

TEST_CASE("runs whose updates were all skipped show nothing, however equal they are") {
  double const inf = std::numeric_limits<double>::infinity();
  std::string const message = "selftest FAILED: every update was skipped";
  auto const cases = cases_of(4, ComputeType::fp16);
  auto const with_skips = [&](auto const& skipped) {
    auto outcomes = sound_outcomes(cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!skipped(cases[i])) continue;
      outcomes[i].result = {.losses = {5, 5, 5, 5, 5}, .norms = {inf, std::nan(""), inf, inf}, .hash = "0123456789"};
    }
    return outcomes;
  };
  auto const all = with_skips([](SelftestCase const&) { return true; });
  auto findings = compare_selftest(cases, all);
  CHECK(differing(findings).empty());
  CHECK(!judge_selftest(findings).passed);
  CHECK(contains(judge_selftest(findings).text, {message + " (no norm", "precision.loss_scale.initial", "--updates"}));
  CHECK(contains(selftest_table(cases, all, findings), {"        5     skipped  01234567  = row 1, EVERY UPDATE"}));

  // The sums of all micro-batches alone overflow.
  auto const some = with_skips(
      [](SelftestCase const& run) { return run.kind.order == SelftestClass::SumOrder::micro_batches_first; });
  findings = compare_selftest(cases, some);
  CHECK(differing(findings).empty());
  CHECK(!judge_selftest(findings).passed);
  CHECK(contains(judge_selftest(findings).text, {message + " in 6 of 18 combinations"}));

  auto one = sound_outcomes(cases);
  one[1].result = all[1].result;
  CHECK(differing(compare_selftest(cases, one)) == std::vector<std::size_t>{2});
  CHECK(contains(compare_selftest(cases, one)[1].text, {"norm of batch 1: skipped, not 1.5"}));
  for (auto& outcome : one) outcome.result.norms[1] = inf; // not all of its updates
  one[1] = one[0];
  CHECK(passes(cases, one));
}

TEST_CASE("a delay that has changed nothing was not tested") {
  for (std::int64_t const accumulate : {1, 4}) {
    auto const cases = cases_of(accumulate);
    auto const sound = sound_outcomes(cases);
    auto outcomes = sound;
    for (std::size_t i = 10; i < 16; ++i) { // the delayed runs: what the synchronous one of their order has left
      bool const late = cases[i].kind.order == SelftestClass::SumOrder::ranks_first;
      outcomes[i] = sound[late ? 4 : 0];
    }
    auto const findings = compare_selftest(cases, outcomes);
    CHECK(differing(findings).empty());
    CHECK(contains(findings[10].text, {"= row 1 up to batch 2, AND TO THE END"}));
    CHECK(!judge_selftest(findings).passed);
    CHECK(contains(judge_selftest(findings).text, {"selftest FAILED: with delayed updates", "nothing was compared"}));
    for (std::size_t i = 10; i < 16; ++i) outcomes[i].result.hash = sound[i].result.hash;
    CHECK(passes(cases, outcomes));
  }
}

TEST_CASE("the table has a row for each run, with the loss and the norm of its last batch") {
  auto const cases = cases_of(1);
  auto const outcomes = sound_outcomes(cases);
  std::string const table = selftest_table(cases, outcomes, compare_selftest(cases, outcomes));
  CHECK(std::count(table.begin(), table.end(), '\n') == 19);
  CHECK(contains(table, {"  3  1      host 0.5  no       none              2.5      1.0625  s0234567  = row 1\n"}));
}
