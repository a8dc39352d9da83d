// What is predicted of a rank's memory, beside what the ledger of a real training holds, rank by rank.
#include "plan/rank_plan.hpp"

#include "support/catch.hpp"
#include "support/training.hpp"

#include "comm/agree.hpp"

#include <bit>

using namespace kozero;
using namespace kozero::test;

namespace {

/// The peaks of a training, its collectives' memory with it.
std::vector<MemoryRow> measured(Config const& config, std::string const& folder,
                                std::vector<std::pair<Space, std::int64_t>> const& limits = {}) {
  World fresh;
  for (auto const& [space, bytes] : limits) fresh.ledger.set_limit(space, bytes);
  RunInput const input{.config = config,
                       .resolved_deck = "",
                       .corpus = open_corpus(config.data, config.model.vocabulary, config.model.context),
                       .batch = batch_shape(config.batch, fresh.world.size()),
                       .folder = folder,
                       .resume = std::nullopt,
                       .overwrite = true};
  train(input, fresh.world, fresh.ledger);
  return fresh.ledger.peak_rows();
}

std::string told(std::vector<MemoryRow> const& rows) {
  std::string text;
  for (auto const& row : rows) text += fmt::format("{} {} {}\n", name_of(row.space), name_of(row.category), row.bytes);
  return text;
}

} // namespace

TEST_CASE_METHOD(RunFixture, "predicted memory is what a training holds at its peak, row by row, to the byte") {
  config.run.updates = 1;
  config.batch.micro = 1;
  gpt2_of(config.model).layers = 2;
  auto const check = [&] {
    CAPTURE(world.rank(), config.zero.stage, *config.batch.accumulate, gpt2_of(config.model).tied,
            static_cast<int>(config.activations.recompute), static_cast<int>(config.precision.compute));
    auto const predicted = plan_rank(config, batch_shape(config.batch, world.size()), world.rank()).memory;
    CHECK(told(predicted) == told(measured(config, folder.file("run"))));
  };
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    config.zero.stage = stage;
    for (std::int64_t const accumulate : {1, 4}) {
      config.batch.accumulate = accumulate;
      for (bool const tied : {true, false}) {
        gpt2_of(config.model).tied = tied;
        for (Recompute const recompute : {Recompute::none, Recompute::unit}) {
          config.activations.recompute = recompute;
          config.precision.compute = recompute == Recompute::unit ? ComputeType::bf16 : ComputeType::fp32;
          check();
        }
      }
    }
  }
}

TEST_CASE_METHOD(RunFixture, "predicted memory is what a training with offload holds") {
  config.run.updates = 3;
  config.batch.accumulate = 2;
  config.offload.optimizer = OffloadTarget::host;
  config.precision.compute = ComputeType::bf16;
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    config.zero.stage = stage;
    for (double const ratio : {0.0, 0.5, 1.0}) {
      config.offload.ratio = ratio;
      for (std::optional<std::int64_t> const& late : {std::optional<std::int64_t>(), std::optional<std::int64_t>(2)}) {
        config.offload.delayed_update.start = late;
        config.precision.gradients = late ? GradientType::compute : GradientType::fp32;
        CAPTURE(world.rank(), stage, ratio, late.has_value());
        auto const predicted = plan_rank(config, batch_shape(config.batch, world.size()), world.rank()).memory;
        CHECK(told(predicted) == told(measured(config, folder.file("run"))));
      }
    }
  }
}

TEST_CASE_METHOD(RunFixture, "predicted memory is what a training with a tree of sums holds") {
  config.run.updates = 2;
  config.run.reproducibility = Reproducibility::topology;
  if (!std::has_single_bit(static_cast<unsigned>(world.size()))) {
    CHECK_THROWS_AS(plan_rank(config, batch_shape(config.batch, world.size()), world.rank()), Error);
    return;
  }
  for (std::int64_t const accumulate : {1, 6, 8}) {
    config.batch.accumulate = accumulate;
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      config.zero.stage = stage;
      for (double const ratio : {0.0, 0.5, 1.0}) {
        if (stage == 0 && ratio > 0) continue;
        config.offload = {.optimizer = ratio > 0 ? OffloadTarget::host : OffloadTarget::none, .ratio = ratio};
        if (ratio == 1.0) config.offload.delayed_update.start = 2;
        CAPTURE(world.rank(), stage, accumulate, ratio);
        auto const predicted = plan_rank(config, batch_shape(config.batch, world.size()), world.rank()).memory;
        CHECK(told(predicted) == told(measured(config, folder.file("run"))));
      }
    }
  }
}

TEST_CASE_METHOD(RunFixture, "a limit of what is predicted holds, and one byte less does not") {
  config.run.updates = 1;
  config.data.validation = "0.2"; // evaluations and checkpoints take no more
  config.zero.stage = 2;
  auto const memory = plan_rank(config, batch_shape(config.batch, world.size()), world.rank()).memory;
  for (Space const space : {Space::device, Space::host}) {
    std::int64_t const bytes = budget_bytes(memory, space);
    CHECK_NOTHROW(measured(config, folder.file("run"), {{space, bytes}}));
    CHECK_THROWS_AS(measured(config, folder.file("run"), {{space, bytes - 1}}), Error);
  }
}
