// Equalities (doc/numerics.md): stages against each other, ranks against one rank.
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/small_run.hpp"
#include "support/world.hpp"

#include <cstring>

using namespace kozero;
using namespace kozero::test;

namespace {

std::vector<SmallRunResult> all_stages(SmallRunOptions options, ComputeType compute, Group const& group) {
  std::vector<SmallRunResult> results;
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    options.stage = stage;
    results.push_back(compute == ComputeType::fp32 ? small_run<float>(options, group)
                                                   : small_run<bf16>(options, group));
  }
  return results;
}

/// The same batches on one rank: all windows of a batch in `micro` at a time.
SmallRunResult on_one_rank(SmallRunOptions options, std::int64_t ranks, std::int64_t micro) {
  Ledger ledger;
  Alone self;
  options.accumulate = options.accumulate * options.micro * ranks / micro;
  options.micro = micro;
  options.stage = 0;
  return small_run<float>(options, self);
}

} // namespace

TEST_CASE_METHOD(World, "all stages have the same bits without accumulation") {
  for (auto model : {odd_model(), tiny_model()}) {
    for (std::int64_t const layers : {1, 2, 3}) {
      for (bool const tied : {true, false}) {
        for (auto const compute : {ComputeType::fp32, ComputeType::bf16}) {
          gpt2_of(model).layers = layers;
          gpt2_of(model).tied = tied;
          auto const results = all_stages({.model = model, .micro = 2}, compute, world);
          for (int stage = 1; stage <= 3; ++stage) {
            INFO("width " << gpt2_of(model).width << ", layers " << layers << ", tied " << tied << ", stage " << stage);
            CHECK(results[stage].hash == results[0].hash);
            CHECK(results[stage].losses == results[0].losses);
            CHECK(results[stage].norms == results[0].norms);
          }
        }
      }
    }
  }
}

TEST_CASE_METHOD(World, "with accumulation stages 0 and 1, and 2 and 3, have the same bits, and the pairs agree") {
  for (auto const& model : {odd_model(), tiny_model()}) {
    for (auto const compute : {ComputeType::fp32, ComputeType::bf16}) {
      SmallRunOptions options{.model = model, .accumulate = 4};
      gpt2_of(options.model).layers = 2;
      auto const results = all_stages(options, compute, world);
      INFO("width " << gpt2_of(model).width);
      CHECK(results[0].hash == results[1].hash);
      CHECK(results[2].hash == results[3].hash);
      if (compute == ComputeType::fp32) {
        CHECK(largest_difference(results[2].losses, results[0].losses) < 1e-5);
        CHECK(largest_difference(results[2].norms, results[0].norms) < 1e-5);
      }
    }
  }
}

TEST_CASE_METHOD(World, "N ranks train as one rank does on the same batch") {
  for (auto const& model : {odd_model(), tiny_model()}) {
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      SmallRunOptions options{.model = model, .stage = stage, .micro = 2, .accumulate = 2};
      auto const ranks = small_run<float>(options, world);
      auto const one = on_one_rank(options, world.size(), 1);
      INFO("width " << gpt2_of(model).width << ", stage " << stage);
      CHECK(largest_difference(ranks.losses, one.losses) < 1e-5);
      CHECK(largest_difference(ranks.norms, one.norms) < 1e-5);
    }
  }
}

TEST_CASE_METHOD(World,
                 "every way to cut a batch into micro-batches gives the same norm, the first included") { // CASES 5
  struct Cut {
    std::int64_t micro, accumulate;
  };
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    std::vector<SmallRunResult> results;
    for (Cut const cut : {Cut{8, 1}, Cut{2, 4}, Cut{1, 8}}) {
      results.push_back(small_run<float>({.stage = stage, .micro = cut.micro, .accumulate = cut.accumulate}, world));
    }
    INFO("stage " << stage);
    CHECK(largest_difference(results[1].norms, results[0].norms) < 1e-5);
    CHECK(largest_difference(results[2].norms, results[0].norms) < 1e-5);
  }
}

TEST_CASE_METHOD(World, "recomputed activations have the same bits") {
  SmallRunOptions options{.stage = 3, .micro = 2};
  gpt2_of(options.model).layers = 3;
  auto const kept = small_run<bf16>(options, world);
  options.recompute = Recompute::unit;
  CHECK(small_run<bf16>(options, world).hash == kept.hash);
}

TEST_CASE_METHOD(World, "parameters gathered at stage 3 have the bits of stage 0") { // CASES 3
  SmallRunOptions options{.micro = 2};
  gpt2_of(options.model).layers = 3;
  auto const parameters = [&](std::int64_t stage) {
    options.stage = stage;
    SmallRun<bf16> run(options, world);
    run.run();
    int const units = run.model().units();
    std::vector<std::vector<std::uint16_t>> blocks;
    run.engine().begin_evaluation(evaluation_visits(units));
    for (int u = 0; u < units; ++u) {
      auto const block = run.engine().params(Lane(), {u, Phase::forward})[0];
      auto& bits = blocks.emplace_back();
      for (bf16 const value : to_host(block)) bits.push_back(value.bits());
    }
    return blocks;
  };
  CHECK(parameters(3) == parameters(0));
}

TEST_CASE_METHOD(World,
                 "more ranks than elements: the losses of one rank, and one norm on all ranks") { // CASES 2 and 4
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    for (bool const clipping : {true, false}) {
      SmallRunOptions options{.model = tiny_model(), .stage = stage};
      options.optimizer.clip = clipping ? std::optional(0.01) : std::nullopt;
      auto const ranks = small_run<float>(options, world);
      auto const one = on_one_rank(options, world.size(), 1);
      INFO("stage " << stage << ", clipping " << clipping);
      CHECK(largest_difference(ranks.losses, one.losses) < 1e-6);
      for (double const norm : ranks.norms) {
        std::int64_t bits = 0;
        std::memcpy(&bits, &norm, sizeof bits);
        for (std::int64_t const other : world.ranks.gather(bits)) CHECK(other == bits);
      }
    }
  }
}
