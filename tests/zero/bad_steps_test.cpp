// Updates that must not happen, and losses over uneven batches.
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/faulty_collectives.hpp"
#include "support/small_run.hpp"
#include "support/world.hpp"

#include <limits>

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr float bad_values[] = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};

/// An Inf or NaN in the third batch (number 2), in the reduction of h.0, which comes after the head's.
template <class T>
void check_skip(SmallRunOptions options, float bad, Group const& world) {
  std::int64_t const reductions_an_update = gpt2_of(options.model).layers + 2;
  FaultyCollectives faulty(world, [&](std::int64_t reduction, auto const& gradients) {
    bool const strikes = reduction == 2 * reductions_an_update + 1 && world.rank() == world.size() - 1;
    if (strikes) gradients.set(3 * 21 * 21 + 5, bad); // the sixth element of h.0.attn.proj.weight
  });
  options.optimizer.lr = 1e-3;
  SmallRun<T> run(options, faulty);
  std::string before;
  for (std::int64_t batch = 0; batch < 5; ++batch) {
    BatchReport const step = run.step();
    INFO("stage " << options.stage << ", batch " << batch);
    CHECK(step.update.skipped == (batch == 2));
    CHECK(step.update.applied == (batch == 2 ? 0 : 1));
    std::string const hash = run.engine().state_hash(Lane());
    if (batch == 2) {
      CHECK(hash == before);
      CHECK(step.update.bad_tensor == "h.0.attn.proj.weight");
    } else {
      CHECK(hash != before);
    }
    before = hash;
    CHECK(std::isfinite(step.loss));
  }
}

} // namespace

TEST_CASE_METHOD(World, "an Inf or NaN on one rank skips the update on all and leaves every bit as it was") { // CASES 6
  SmallRunOptions options{.micro = 2};
  for (float const bad : bad_values) {
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      options.stage = stage;
      options.offload = {};
      check_skip<float>(options, bad, world);
      if (stage == 0) continue;
      for (double const ratio : {0.5, 1.0}) {
        options.offload = {.optimizer = OffloadTarget::host, .ratio = ratio};
        options.gradients = ratio < 1 ? GradientType::fp32 : GradientType::compute;
        check_skip<bf16>(options, bad, world);
        check_skip<fp16>(options, bad, world);
      }
    }
  }
}

TEST_CASE_METHOD(World, "micro-batches with 33, 1, 0 and 20 valid targets equal one batch") { // CASES 7
  ModelConfig const model = odd_model();
  RowMaker const random = random_rows(model.vocabulary);
  RowMaker const uneven = [&](std::int64_t batch, std::int64_t row, std::span<std::int32_t> in,
                              std::span<std::int32_t> out) {
    random(batch, row, in, out);
    std::int64_t const valid[] = {33, 1, 0, 20};
    for (std::size_t t = 0; t < out.size(); ++t) {
      out[t] = static_cast<std::int64_t>(t) < valid[row % 4] ? in[t] : -1;
    }
  };
  Alone self;
  auto const apart = small_run<float>({.model = model, .micro = 1, .accumulate = 4, .rows = uneven}, self);
  auto const together = small_run<float>({.model = model, .micro = 4, .accumulate = 1, .rows = uneven}, self);
  CHECK(largest_difference(apart.losses, together.losses) < 1e-6);
  CHECK(largest_difference(apart.norms, together.norms) < 1e-5);

  auto const ranks = small_run<float>({.model = model, .stage = 2, .micro = 1, .accumulate = 4, .rows = uneven}, world);
  auto const one = small_run<float>({.model = model, .micro = 1, .accumulate = 4 * world.size(), .rows = uneven}, self);
  CHECK(largest_difference(ranks.losses, one.losses) < 1e-6);
  CHECK(largest_difference(ranks.norms, one.norms) < 1e-5);
}

TEST_CASE_METHOD(
    World, "a batch without a valid target has loss 0, and only decay moves, on matrices alone") { // CASES 7 and 10
  RowMaker const none = [](std::int64_t, std::int64_t, std::span<std::int32_t> in, std::span<std::int32_t> out) {
    std::fill(in.begin(), in.end(), 1);
    std::fill(out.begin(), out.end(), -1);
  };
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    SmallRunOptions options{.stage = stage, .rows = none};
    options.optimizer.lr = 1e-2;
    SmallRun<float> run(options, world);
    auto const values = [&] {
      std::vector<std::vector<float>> tensors;
      for (auto const& entry : run.state()) {
        if (entry.kind == "master") tensors.push_back(values_of(entry));
      }
      return tensors;
    };
    auto const before = values();
    BatchReport const step = run.step();
    auto const after = values();
    CHECK(step.loss == 0.0);
    CHECK(step.update.norm == 0.0);
    CHECK(step.update.applied == 1);
    std::size_t tensor = 0;
    for (auto const& entry : run.state()) {
      if (entry.kind != "master") continue;
      float const keep = entry.shape.size() >= 2 ? 1.0f - 1e-2f * 0.1f : 1.0f;
      for (std::size_t i = 0; i < before[tensor].size(); ++i) {
        INFO(entry.name << " element " << i);
        REQUIRE(std::abs(after[tensor][i] - keep * before[tensor][i]) <= 1e-7f * std::abs(before[tensor][i]));
      }
      ++tensor;
    }
  }
}
