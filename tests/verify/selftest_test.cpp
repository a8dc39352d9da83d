// The self-test itself, on runs of the odd model.
#include "support/catch.hpp"
#include "support/faulty_collectives.hpp"
#include "support/training.hpp"

#include "verify/selftest.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr std::int64_t updates = 3;

SelftestInput input_of(Config const& config, Group const& group) {
  return {config, open_corpus(config.data, config.model.vocabulary, config.model.context),
          batch_shape(config.batch, group.size()), updates};
}

std::string report_of(Config const& config, Group const& group, bool passes, Ledger& ledger) {
  auto const report = selftest(input_of(config, group), group, ledger);
  INFO(report.text);
  CHECK(report.passed == passes);
  return report.text;
}

/// What a run of the deck's stage and offload takes in the device's account.
std::int64_t device_bytes(Config const& config, Group const& group) {
  Ledger ledger;
  auto const input = input_of(config, group);
  auto const training = make_training({config, input.batch, nullptr}, group, ledger);
  return ledger.bytes(Space::device);
}

/// The table's line with that number.
std::string row_of(std::string const& report, int row) {
  std::istringstream lines(report);
  std::string line;
  for (int i = 0; i <= row; ++i) std::getline(lines, line);
  return line;
}

} // namespace

TEST_CASE_METHOD(RunFixture,
                 "all combinations are as they should be, in fp32 and in 16 bits, with and without accumulation") {
  std::int64_t const before = ledger.bytes(Space::device);
  config.batch.accumulate = 3;
  report_of(config, world, true, ledger);
  config.precision = {.compute = ComputeType::bf16, .gradients = GradientType::compute};
  report_of(config, world, true, ledger);
  config.batch.accumulate = 1;
  report_of(config, world, true, ledger);
  CHECK(ledger.bytes(Space::device) == before);
}

TEST_CASE_METHOD(RunFixture, "a gradient that goes wrong once in one run makes the self-test fail, in that row") {
  std::int64_t const blocks = gpt2_of(config.model).layers + 2;
  for (int const row : {2, 17}) {
    std::int64_t const strike = ((row - 1) * updates + 1) * blocks; // the first of its second batch
    FaultyCollectives faulty(world, [&](std::int64_t reduction, auto const& gradients) {
      if (reduction == strike && world.rank() == 0) gradients.set(7, gradients.get(7) + 1e-3F);
    });
    auto const report = report_of(config, faulty, false, ledger);
    CHECK(contains(row_of(report, row), {"DIFFERS FROM row 1 in norm of batch 2"}));
    CHECK(report.find("DIFFERS") == report.rfind("DIFFERS"));
  }
}

TEST_CASE_METHOD(RunFixture, "a self-test whose runs change nothing fails, and says so") {
  Config overflows = config;
  overflows.precision = {.compute = ComputeType::fp16, .loss_scale = {.initial = 1 << 24}};
  CHECK(contains(report_of(overflows, world, false, ledger), {"skipped", "FAILED: every update was skipped (no norm"}));
  Config rests = config;
  rests.optimizer.lr = 1e-30; // less than any weight shows
  CHECK(contains(report_of(rests, world, false, ledger), {"FAILED: with delayed updates the state is that without"}));
  Config ends = config; // before the self-test does
  ends.run.updates = 1;
  report_of(ends, world, true, ledger);
}

TEST_CASE_METHOD(RunFixture, "combinations that do not fit on one of the ranks are left out, the others compared") {
  std::int64_t const stage_0 = device_bytes(config, world) + ledger.bytes(Space::device); // with that of messages
  auto const limited = [&](std::int64_t limit, bool passes) {
    if (world.rank() == world.size() - 1) ledger.set_limit(Space::device, limit);
    return report_of(config, world, passes, ledger);
  };
  std::string const too_little = "does not fit: device memory: '";

  CHECK(!contains(row_of(limited(stage_0, true), 1), {too_little}));
  auto const report = limited(stage_0 - 1, true);
  CHECK(contains(row_of(report, 1), {too_little}));
  for (int const on_host : {4, 7, 10, 12, 14, 16}) CHECK(!contains(row_of(report, on_host), {too_little}));
  CHECK(contains(report, {"selftest passed: ", "do not fit in memory"}));

  CHECK(contains(limited(1000, false), {"selftest FAILED: nothing was compared (18 of 18"}));
}
