// The bits of a training depend on neither the number of ranks, the stage, nor offload (run.reproducibility: topology).
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/small_run.hpp"
#include "support/world.hpp"

#include "data/batch_shape.hpp"
#include "kernels/flat.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

OffloadConfig on_host(double ratio, DelayedUpdateConfig delayed = {}) {
  return {.optimizer = OffloadTarget::host, .ratio = ratio, .delayed_update = delayed};
}

// --- the sums alone

ModelLayout some_blocks() {
  ModelLayout layout;
  for (std::int64_t const size : {3, 20001, 130}) layout.emplace_back("block", std::vector<TensorSpec>{{"t", {size}}});
  return layout;
}

/// The last unit adds to the first block too, as the head of a tied embedding.
std::vector<UnitUses> uses_of_blocks() { return {{{0}, {0}, {0}}, {{1}, {1}, {1}}, {{2, 0}, {2, 0}, {2, 0}}}; }

/// Of every size, so that each order of sums has other bits.
std::vector<float> addend(std::int64_t leaf, int block, std::int64_t size) {
  RngKey const key{7, RngPurpose::shuffle, static_cast<std::uint32_t>(leaf), static_cast<std::uint32_t>(block)};
  std::vector<float> values;
  for (std::int64_t i = 0; i < size; ++i) {
    Philox4 const bits = random_bits(key, static_cast<std::uint64_t>(i));
    float const part = static_cast<float>(bits[0] % 20001) - 10000.0f;
    values.push_back(std::ldexp(part, static_cast<int>(bits[1] % 12)));
  }
  return values;
}

/// Level by level.
std::vector<float> sum_of_neighbours(std::vector<std::vector<float>> level) {
  while (level.size() > 1) {
    std::vector<std::vector<float>> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      next.push_back(level[i]);
      for (std::size_t e = 0; i + 1 < level.size() && e < level[i].size(); ++e) next.back()[e] += level[i + 1][e];
    }
    level = next;
  }
  return level.front();
}

std::vector<float> expected_sum(std::int64_t leaves, int block, std::int64_t size) {
  std::vector<std::vector<float>> all;
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) all.push_back(addend(leaf, block, size));
  return sum_of_neighbours(all);
}

/// One update's backward passes, with addends of their numbers in the place of gradients.
void add_all(GradStore& store, Plan const& plan, ModelLayout const& layout, BatchShape const& shape) {
  Lane const lane;
  for (std::int64_t m = 0; m < shape.accumulate; ++m) {
    std::int64_t const leaf = shape.first_sample(0, m, plan.rank());
    store.begin(lane, {m, shape.accumulate});
    for (int unit = static_cast<int>(layout.size()) - 1; unit >= 0; --unit) {
      if (unit == 2) store.block(lane, 0); // before its own unit
      DeviceArray const values(addend(leaf, unit, layout[unit].size()));
      accumulate(lane, store.block(lane, unit).data(), static_cast<float const*>(values.data()), values.size());
      lane.fence("test");
      store.reduce(lane, unit);
    }
  }
  store.wait(lane);
}

// --- whole trainings

struct Outcome {
  SmallRunResult run;
  std::optional<double> held_out;
};

template <class T>
Outcome outcome(SmallRunOptions const& options, Group const& group) {
  SmallRun<T> run(options, group);
  Outcome result{.run = run.run(), .held_out = {}};
  result.held_out = run.training().evaluate();
  return result;
}

/// The same batches on any number of ranks: `leaves` micro-batches.
SmallRunOptions options_of(std::int64_t leaves, std::int64_t ranks) {
  SmallRunOptions options{.accumulate = leaves / ranks, .updates = 4};
  options.optimizer.clip = 0.5;
  options.reproducibility = Reproducibility::topology;
  return options;
}

struct Way {
  std::int64_t stage;
  OffloadConfig offload;
};

std::vector<Way> ways(DelayedUpdateConfig delayed) {
  if (delayed.start) return {{1, on_host(1, delayed)}, {2, on_host(0.5, delayed)}, {3, on_host(1, delayed)}};
  return {{0, {}}, {1, {}}, {2, {}}, {3, {}}, {1, on_host(0.5)}, {2, on_host(0.5)}, {3, on_host(1)}};
}

/// Each way to train on these ranks has the bits of one rank at stage 0, or 1 with delay.
template <class T>
void compare_with_one_rank(std::int64_t leaves, SmallRunOptions const& more, Group const& group,
                           DelayedUpdateConfig delayed = {}) {
  Alone self;
  auto const with = [&](Way const& way, std::int64_t ranks) {
    SmallRunOptions options = options_of(leaves, ranks);
    options.model = more.model;
    options.loss_scale = more.loss_scale;
    options.gradients = more.gradients;
    options.micro = more.micro;
    options.held_out = leaves * more.micro + 5; // of the second batch some ranks have nothing
    options.recompute = way.stage == 3 ? Recompute::unit : Recompute::none;
    options.stage = way.stage;
    options.offload = way.offload;
    return options;
  };
  auto const one = outcome<T>(with(ways(delayed).front(), 1), self);
  CHECK(one.run.reports.back().applied > 0);
  for (Way const& way : ways(delayed)) {
    CAPTURE(leaves, way.stage, way.offload.ratio, delayed.start.value_or(0), sizeof(T));
    auto const ranks = outcome<T>(with(way, group.size()), group);
    CHECK(ranks.run.losses == one.run.losses);
    CHECK(ranks.run.norms == one.run.norms);
    CHECK(ranks.held_out == one.held_out);
    CHECK(ranks.run.hash == one.run.hash);
  }
}

} // namespace

TEST_CASE_METHOD(World, "what is reduced is the tree of neighbours over all micro-batches of all ranks") {
  ModelLayout const layout = some_blocks();
  for (std::int64_t const leaves : {8, 24, 40, 64}) {
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      for (double const ratio : {0.0, 0.5, 1.0}) {
        if (stage == 0 && ratio > 0) continue; // is refused
        CAPTURE(leaves, stage, ratio);
        Sharding sharding{.zero = {stage}, .sums = SumOrder::tree};
        if (ratio > 0) sharding.offload = on_host(ratio);
        Plan const plan(sharding, world.rank(), world.size(), leaves / world.size());
        BatchShape const shape{1, plan.micro_batches(), world.size(), plan.in_a_row()};
        LinkTraffic link;
        auto const store = make_grad_store(plan, DType::f32, layout, uses_of_blocks(), world.collectives, ledger, link);
        for (int batch = 0; batch < 2; ++batch) add_all(*store, plan, layout, shape);
        auto const pieces = plan.pieces(layout);
        for (std::size_t p = 0; p < pieces.size(); ++p) {
          auto const& [block, interval, space] = pieces[p];
          auto const sum = expected_sum(leaves, block, layout[block].size());
          std::vector<float> const wanted(sum.begin() + interval.begin, sum.begin() + interval.end);
          Site const site{store->reduced(static_cast<int>(p)), space == Space::host ? Space::pinned : Space::device};
          CHECK(read_values<float>(site, interval.size()) == wanted);
        }
      }
    }
  }
}

TEST_CASE_METHOD(World, "every stage, with offload and without, has the losses, norms and state of one rank") {
  compare_with_one_rank<float>(8, {}, world);
  compare_with_one_rank<float>(24, {.model = tiny_model()}, world); // of three powers of two
  compare_with_one_rank<float>(24, {.model = tiny_model(), .gradients = GradientType::compute, .micro = 3}, world);
  compare_with_one_rank<bf16>(16, {.micro = 2}, world);
  compare_with_one_rank<fp16>(8, {.loss_scale = 0x1p12}, world);
}

TEST_CASE_METHOD(World, "delayed updates have the losses, norms and state of delayed updates on one rank") {
  compare_with_one_rank<float>(8, {}, world, {2});
  compare_with_one_rank<bf16>(24, {.model = tiny_model()}, world, {1});
}

TEST_CASE_METHOD(World, "other orders of sums have other bits, so equal ones say something") {
  SmallRunOptions options = options_of(16, world.size());
  auto const tree = small_run<float>(options, world);
  options.reproducibility = Reproducibility::rerun;
  CHECK(small_run<float>(options, world).hash != tree.hash);
  for (double const norm : tree.norms) CHECK(norm > 0);
}

TEST_CASE_METHOD(World, "a number of ranks that cuts no binary tree evenly is refused") {
  Sharding sharding{.sums = SumOrder::tree};
  CHECK_THROWS_AS(Plan(sharding, 0, 3), Error);
  CHECK_THROWS_AS(Plan(sharding, 0, 12), Error);
  CHECK_NOTHROW(Plan(sharding, 0, 16));
  sharding.gradients = GradientType::compute;
  CHECK_THROWS_AS(Plan(sharding, 0, 2), Error);
}
