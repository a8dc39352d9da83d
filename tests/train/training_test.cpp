// The assembly of a training: factors of the loss, losses on any number of ranks, counters, memory, checkpoints.
#include "support/catch.hpp"
#include "support/faulty_collectives.hpp"
#include "support/training.hpp"

#include "comm/planned.hpp"
#include "kernels/gemm_workspace.hpp"

#include <bit>
#include <cmath>
#include <limits>

using namespace kozero;
using namespace kozero::test;

namespace {

TrainingSetup setup_with(Config const& config, BatchShape const& batch) {
  Corpus const corpus = open_corpus(config.data, config.model.vocabulary, config.model.context);
  return {config, batch, std::make_shared<CorpusTokens>(corpus, config.run.seed)};
}

/// Tokens of which one rank cannot read those from a sample on.
class FailingTokens final : public TokenSource {
public:
  FailingTokens(std::shared_ptr<TokenSource> tokens, std::int64_t from) : tokens_(std::move(tokens)), from_(from) {}
  void training_rows(std::int64_t first_sample, TokenRows const& rows) override {
    if (first_sample >= from_) throw InputError("a bad id");
    tokens_->training_rows(first_sample, rows);
  }
  void evaluation_rows(std::int64_t, TokenRows const&) override { throw Error("the disk is gone"); }
  std::int64_t evaluation_windows() const override { return 1; }

private:
  std::shared_ptr<TokenSource> tokens_;
  std::int64_t from_;
};

/// A training with memory of its own, at its first parameters.
class Begun {
public:
  Begun(Config const& config, BatchShape const& batch, Group const& group)
      : training_(make_training(setup_with(config, batch), group, ledger_)) {
    training_->initialise();
  }
  Training* operator->() { return training_.get(); }

private:
  Ledger ledger_;
  std::unique_ptr<Training> training_;
};

std::vector<BatchReport> steps(Config const& config, BatchShape const& batch, Group const& group, int count) {
  Begun training(config, batch, group);
  std::vector<BatchReport> reports;
  for (int i = 0; i < count; ++i) reports.push_back(*training->step());
  return reports;
}

std::vector<double> scales(std::vector<BatchReport> const& reports) {
  std::vector<double> values;
  for (auto const& report : reports) values.push_back(report.scaling->used);
  return values;
}

std::vector<double> norms(std::vector<BatchReport> const& reports) {
  std::vector<double> values;
  for (auto const& report : reports) values.push_back(report.update.norm);
  return values;
}

/// The relative error with which fp16 holds a number.
double error_in_fp16(double x) {
  return std::abs(static_cast<double>(static_cast<float>(fp16(static_cast<float>(x)))) / x - 1);
}

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

void check_counters(Counters const& got, Counters const& wanted) {
  CHECK(got.batches_seen == wanted.batches_seen);
  CHECK(got.updates_applied == wanted.updates_applied);
  CHECK(got.updates_skipped == wanted.updates_skipped);
}

std::string told(Ledger const& ledger) {
  std::string text;
  for (auto const& row : ledger.peak_rows()) {
    text += fmt::format("{} {} {}\n", name_of(row.space), name_of(row.category), row.bytes);
  }
  return text;
}

} // namespace

TEST_CASE("without a loss scale a row counts one over the valid targets") {
  for (std::int64_t const valid : {1, 3, 1000, 4'194'304}) {
    LossFactors const factors = loss_factors(valid, 33, std::nullopt);
    CHECK(factors.of_row == static_cast<float>(1.0 / static_cast<double>(valid)));
    CHECK(factors.of_gradient == 1.0);
  }
}

TEST_CASE("with a loss scale a row counts the same whatever its share of the batch is") {
  for (double const scale : {1.0, 1024.0, 65536.0}) {
    for (std::int64_t const rows : {1, 33, 8192}) {
      for (std::int64_t const valid : {std::int64_t{1}, rows, 7 * rows - 1, 512 * rows}) {
        LossFactors const factors = loss_factors(valid, rows, scale);
        CHECK(factors.of_row == static_cast<float>(scale / static_cast<double>(rows)));
        // Used, a gradient is divided: a row counts one over the valid targets then.
        CHECK(std::abs(factors.of_row / factors.of_gradient * static_cast<double>(valid) - 1) < 1e-7);
      }
    }
  }
}

TEST_CASE("a batch without a valid target has factors that can be divided by") {
  CHECK(loss_factors(0, 33, std::nullopt).of_row == 1.0F);
  CHECK(loss_factors(0, 33, std::nullopt).of_gradient == 1.0);
  CHECK(loss_factors(0, 64, 1024.0).of_row == 16.0F);
  CHECK(loss_factors(0, 64, 1024.0).of_gradient == 16.0);
}

TEST_CASE("fp16 holds the gradients of logits in a batch of 4M tokens") { // CASES 49
  std::int64_t const rows = std::int64_t{8} * 1024;                       // micro · T
  std::int64_t const tokens = 512 * rows;                                 // on 512 ranks
  double const scale = LossScaleConfig().initial;
  double const now = loss_factors(tokens, rows, scale).of_row;
  double const former = scale / static_cast<double>(tokens); // of a scale that acts on the mean over the batch
  CHECK(now == 8.0);
  CHECK(former == 0x1p-6);
  // The probability of a token before training: 1.6e-4, a normal number. Formerly 3.1e-7, five of the smallest steps.
  CHECK(error_in_fp16(now / 50257) <= 0x1p-11);
  CHECK(error_in_fp16(former / 50257) > 0.04);
  // And of a rare one later on: 8e-6, 134 steps. Formerly 1.6e-8, which is rounded to zero.
  CHECK(error_in_fp16(now * 1e-6) < 0x1p-8);
  CHECK(error_in_fp16(former * 1e-6) == 1.0);
}

TEST_CASE_METHOD(RunFixture, "in fp16 every cut of a batch has the same loss scales, and norms that agree") {
  Alone self;
  std::int64_t const n = world.size();
  config.precision = {.compute = ComputeType::fp16, .loss_scale = {.initial = 1024, .window = 2}};
  for (std::int64_t const stage : {0, 2}) {
    config.zero.stage = stage;
    auto const whole = steps(config, {4, 1, n}, world, 5);
    CHECK(scales(whole) == std::vector<double>{1024, 1024, 2048, 2048, 4096});
    for (auto const& other : {steps(config, {1, 4, n}, world, 5), steps(config, {4, n, 1}, self, 5),
                              steps(config, {1, 4 * n, 1}, self, 5)}) {
      CHECK(scales(other) == scales(whole));
      CHECK(largest_difference(norms(other), norms(whole)) < 3e-3);
    }
  }
}

TEST_CASE_METHOD(RunFixture, "in fp16 the scale that overflows depends on neither ranks nor accumulation") {
  Alone self;
  std::int64_t const n = world.size();
  config.precision = {.compute = ComputeType::fp16, .loss_scale = {.initial = 0x1p24, .hysteresis = 1}};
  auto const one = steps(config, {1, 1, 1}, self, 6);
  CHECK(one.front().update.skipped);
  CHECK_FALSE(one.back().update.skipped);
  CHECK(scales(steps(config, {1, 5, 1}, self, 6)) == scales(one));
  CHECK(scales(steps(config, {1, 1, n}, world, 6)) == scales(one));
  CHECK(scales(steps(config, {1, 3, n}, world, 6)) == scales(one));
}

TEST_CASE_METHOD(RunFixture, "N ranks have the losses of one rank, to the bit, in the first batch and in evaluations") {
  Alone self;
  std::int64_t const n = world.size();
  // Seven windows: of the last batch some ranks have nothing.
  config.data.validation = folder.write("held out", text_of(bytes_of_windows(7, config.model.context)));
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16}) {
    config.precision.compute = compute;
    config.zero.stage = 0;
    Begun one(config, {2, 2 * n, 1}, self);
    double const evaluation = *one->evaluate();
    double const second = one->loss_of(1);
    double const first = one->step()->loss;
    CHECK(std::abs(evaluation - std::log(257)) < 0.5);
    CHECK(first != second);
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      INFO("compute type " << static_cast<int>(compute) << ", stage " << stage);
      config.zero.stage = stage;
      Begun ranks(config, {2, 2, n}, world);
      CHECK(bits(*ranks->evaluate()) == bits(evaluation));
      CHECK(bits(ranks->loss_of(1)) == bits(second));
      CHECK(bits(ranks->step()->loss) == bits(first));
    }
    if (compute != ComputeType::fp32) continue;
    for (BatchShape const& cut : {BatchShape{1, 4, n}, BatchShape{4, 1, n}}) {
      Begun other(config, cut, world);
      CHECK(relative_difference(*other->evaluate(), evaluation) < 1e-6);
      CHECK(relative_difference(other->step()->loss, first) < 1e-6);
    }
  }
}

TEST_CASE_METHOD(RunFixture, "a step counts its batch, and its update as applied or skipped") {
  std::int64_t const in_second = reductions_a_batch(config, world.size());
  FaultyCollectives faulty(world, [&](std::int64_t reduction, auto const& gradients) {
    if (reduction == in_second && world.rank() == world.size() - 1) gradients.set(0, std::nanf(""));
  });
  config.run.updates = 2;
  Begun training(config, {2, 1, world.size()}, faulty);
  check_counters(training->counters(), {});
  CHECK(training->step()->update.applied == 1);
  check_counters(training->counters(), {.batches_seen = 1, .updates_applied = 1});
  CHECK(training->step()->update.skipped);
  check_counters(training->counters(), {.batches_seen = 2, .updates_applied = 1, .updates_skipped = 1});
  CHECK_FALSE(training->done());
  CHECK(training->step()->update.applied == 1);
  check_counters(training->counters(), {.batches_seen = 3, .updates_applied = 2, .updates_skipped = 1});
  CHECK(training->done());
  CHECK(training->drain() == 0);
}

TEST_CASE_METHOD(RunFixture, "a pending update counts as begun, and is applied when a run that has it ends") {
  config.zero.stage = 2;
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {2}};
  config.run.updates = 3;
  Ledger memory;
  TrainingOf<float> training(setup_with(config, {2, 1, world.size()}), world, memory);
  training.initialise();
  CHECK(training.next_update() == 1);
  struct After {
    std::int64_t applied, next;
    bool pending, done;
  };
  for (After const& after : {After{1, 2, false, false}, {1, 3, true, false}, {2, 4, true, true}}) {
    training.step();
    CHECK(training.counters().updates_applied == after.applied);
    CHECK(training.next_update() == after.next);
    CHECK(training.has_pending() == after.pending);
    CHECK(training.done() == after.done);
  }
  std::string const before = training.state_hash();
  CHECK(training.drain() == 1);
  CHECK(training.state_hash() != before);
  check_counters(training.counters(), {.batches_seen = 3, .updates_applied = 3});
  CHECK_FALSE(training.has_pending());
  CHECK(training.done());
  CHECK(training.drain() == 0);
}

TEST_CASE_METHOD(RunFixture, "a stop that one rank hears ends the batch on all, which counts for nothing") {
  BatchShape const batch{2, 3, world.size()};
  for (std::int64_t const stage : {0, 3}) {
    config.zero.stage = stage;
    Begun undisturbed(config, batch, world);
    Begun training(config, batch, world);
    for (int const heard_at : {0, 1, 2}) { // before the batch, and before its second and third micro-batch
      int asked = 0;
      StopAsked const stop = [&] { return asked++ == heard_at && world.rank() == world.size() - 1; };
      CHECK_FALSE(training->step(stop).has_value());
      CHECK(asked == heard_at + 1);
      check_counters(training->counters(), {});
    }
    BatchReport const wanted = *undisturbed->step();
    BatchReport const got = *training->step();
    CHECK(bits(got.loss) == bits(wanted.loss));
    CHECK(bits(got.update.norm) == bits(wanted.update.norm));
    CHECK(training->state_hash() == undisturbed->state_hash());
  }
}

TEST_CASE_METHOD(RunFixture, "with a counting ledger and no tokens a training holds the bytes of a real one") {
  config.precision = {.compute = ComputeType::bf16, .gradients = GradientType::compute};
  BatchShape const batch{2, 2, world.size()};
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (auto const& offload :
         {OffloadConfig{}, OffloadConfig{.optimizer = OffloadTarget::host, .ratio = 0.5, .delayed_update = {2}}}) {
      if (stage == 0 && offload.optimizer == OffloadTarget::host) continue; // is refused
      config.zero.stage = stage;
      config.offload = offload;
      Ledger counted(Ledger::Buffers::counted);
      PlannedRanks planned(world.rank(), world.size());
      ProcessGrid const grid(planned, config.parallel, counted);
      auto const plan = make_training({config, batch, nullptr}, grid.state(), counted);
      World real;
      auto const training = make_training(setup_with(config, batch), real.world, real.ledger);
      INFO("stage " << stage);
      CHECK(counted.bytes(Space::device) == real.ledger.bytes(Space::device));
      CHECK(told(counted) == told(real.ledger));
      training->initialise();
      training->step();
      CHECK(told(counted) == told(real.ledger));
    }
  }
}

TEST_CASE_METHOD(RunFixture, "TF32 is refused where the library has none, though any deck may be planned") {
  config.precision.tf32 = true;
  BatchShape const batch{2, 1, world.size()};
  Ledger counting(Ledger::Buffers::counted), ledger;
  CHECK_NOTHROW(make_training({.config = config, .batch = batch, .tokens = nullptr}, world, counting));
  if (gemm_traits().has_tf32) {
    CHECK_NOTHROW(make_training(setup_with(config, batch), world, ledger));
  } else {
    CHECK_THROWS_WITH(make_training(setup_with(config, batch), world, ledger),
                      Catch::Matchers::StartsWith("precision.tf32 is true (this build multiplies by "));
    CHECK(ledger.peak_rows().empty());
  }
}

TEST_CASE_METHOD(RunFixture, "a checkpoint gives its counters, hash and next batch to any number of ranks and stage") {
  Alone self;
  std::int64_t const n = world.size();
  config.precision = {.compute = ComputeType::fp16, .loss_scale = {.initial = 1024, .window = 2}};
  config.zero.stage = 2;
  config.offload = {.optimizer = OffloadTarget::host, .ratio = 0.5, .delayed_update = {2}};
  Begun training(config, {2, 1, n}, world);
  for (int i = 0; i < 3; ++i) training->step();
  REQUIRE(training->has_pending());
  CheckpointInfo info = training->checkpoint_info();
  info.state_hash = training->state_hash();
  std::filesystem::create_directories(folder.file("run"));
  auto const checkpoint = save_checkpoint(folder.file("run"), info, training->state(), 1, world.ranks);

  Config other = config;
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    other.zero.stage = stage;
    other.offload.ratio = 1 / static_cast<double>(stage);
    struct Place {
      BatchShape batch;
      Group group;
    };
    for (Place const& place : {Place{{2, n, 1}, self}, Place{{2, 1, n}, world}}) {
      INFO("stage " << stage << " on " << place.group.size());
      Begun restored(other, place.batch, place.group);
      CHECK(restored->restore(checkpoint).state_hash == info.state_hash);
      CHECK(restored->state_hash() == info.state_hash);
      check_counters(restored->counters(), {.batches_seen = 3, .updates_applied = 2});
      CHECK(restored->has_pending());
      CHECK(bits(restored->loss_of(3)) == bits(training->loss_of(3)));
      BatchReport const next = *restored->step();
      CHECK(next.scaling->used == 2048); // doubled after two
      check_counters(restored->counters(), {.batches_seen = 4, .updates_applied = 3});
    }
  }
}

TEST_CASE_METHOD(RunFixture,
                 "data that one rank cannot read ends the step of all, with the state of the batch before") {
  Ledger ledger;
  int const last = world.size() - 1;
  TrainingSetup setup = setup_with(config, {1, 1, world.size()});
  if (world.rank() == last) setup.tokens = std::make_shared<FailingTokens>(setup.tokens, 2 * setup.batch.global());
  auto const training = make_training(setup, world, ledger);
  training->initialise();
  for (int i = 0; i < 2; ++i) REQUIRE(training->step());
  std::string const hash = training->state_hash();
  std::string const rank = world.size() == 1 ? "" : fmt::format("rank {} on host ", last);
  for (int i = 0; i < 2; ++i) { // no rank has gone on
    int status = 0;
    try {
      training->step();
    } catch (DataError const& error) {
      status = error.exit_code();
      CHECK(contains(error.what(), {rank, "a bad id"}));
    }
    CHECK(status == exit_bad_input);
  }
  CHECK(!training->step([&] { return world.rank() == 0; })); // a stop wins
  CHECK(training->counters().batches_seen == 2);
  CHECK(training->state_hash() == hash);
  CHECK(contains(message_of<DataError>([&] { training->loss_of(2); }), {"a bad id"}));
}
