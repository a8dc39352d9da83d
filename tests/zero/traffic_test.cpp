// ZeRO's table of traffic (doc/architecture.md), to the element.
#include "support/catch.hpp"
#include "support/small_run.hpp"
#include "support/world.hpp"

#include "model/families.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

struct Moved {
  std::int64_t parameters, gradients; // elements received, all ranks together, an update
};

Moved moved_in_one_update(SmallRunOptions options, Group const& group) {
  options.updates = 1;
  auto const result = small_run<bf16>(options, group);
  std::array<std::int64_t, 2> sums = {result.parameters.elements, result.gradients.elements};
  CHECK(result.parameters.bytes == 2 * sums[0]);
  CHECK(result.gradients.bytes == 4 * sums[1]);
  group.ranks.sum(std::span<std::int64_t>(sums));
  return {sums[0], sums[1]};
}

ModelConfig model_of(std::int64_t layers, bool tied) {
  ModelConfig model = odd_model();
  gpt2_of(model).layers = layers;
  gpt2_of(model).tied = tied;
  return model;
}

} // namespace

TEST_CASE_METHOD(World, "traffic of an update is that of the table, to the element") {
  for (bool const tied : {true, false}) {
    ModelConfig const model = model_of(3, tied);
    ModelLayout const layout = architecture_of(model)->layout();
    // (N-1)/N of the parameters a rank, so N-1 times the parameters on all ranks together
    std::int64_t const psi = parameter_count(layout) * (world.size() - 1);
    auto const at_stage = [&](std::int64_t stage) {
      return moved_in_one_update({.model = model, .stage = stage}, world);
    };
    INFO("tied " << tied);
    Moved const stage_0 = at_stage(0);
    CHECK(stage_0.parameters == 0);
    CHECK(stage_0.gradients == 2 * psi);
    for (std::int64_t const stage : {1, 2}) {
      Moved const moved = at_stage(stage);
      CHECK(moved.parameters == psi);
      CHECK(moved.gradients == psi);
    }
    // Stage 3 gathers each block for forward and again for backward, but for the three that need no second time:
    // the embedding, the last layer and the head.
    std::int64_t const once =
        (layout[0].size() + layout[layout.size() - 2].size() + layout.back().size()) * (world.size() - 1);
    Moved const stage_3 = at_stage(3);
    CHECK(stage_3.parameters == 2 * psi - once);
    CHECK(stage_3.gradients == psi);
  }
}

TEST_CASE_METHOD(World, "with accumulation only what moves each micro-batch moves more") {
  for (bool const tied : {true, false}) {
    ModelConfig const model = model_of(3, tied);
    ModelLayout const layout = architecture_of(model)->layout();
    auto const moved = [&](std::int64_t stage, std::int64_t accumulate) {
      return moved_in_one_update({.model = model, .stage = stage, .accumulate = accumulate}, world);
    };
    // What the ring still holds when the next micro-batch begins: the first layer; and where the embedding is tied, so
    // has a slot of its own, the embedding and the second layer.
    std::int64_t const held =
        (layout[1].size() + (tied ? layout[0].size() + layout[2].size() : 0)) * (world.size() - 1);
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      Moved const once = moved(stage, 1);
      Moved const four_times = moved(stage, 4);
      INFO("stage " << stage << ", tied " << tied);
      CHECK(four_times.gradients == once.gradients * (stage >= 2 ? 4 : 1));
      CHECK(four_times.parameters == (stage == 3 ? 4 * once.parameters - 3 * held : once.parameters));
    }
  }
}
