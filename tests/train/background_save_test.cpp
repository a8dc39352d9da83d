// Checkpoints that are written while training goes on are those of a run that waits for them.
#include "support/catch.hpp"
#include "support/file_size_limit.hpp"
#include "support/training.hpp"

#include "io/checkpoint_verify.hpp"

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

std::string step_folder(std::string const& run, std::int64_t step) { return checkpoint_path(run, step).string(); }

/// What checkpoint.h5 says of the state.
std::string told(CheckpointInfo const& info) {
  return fmt::format("{} {} {} {} {} {} {}", info.counters.batches_seen, info.counters.updates_applied,
                     info.counters.updates_skipped, info.state_hash, info.pending_gradient_scale.value_or(-1),
                     info.ranks, info.global_batch);
}

} // namespace

TEST_CASE_METHOD(RunFixture,
                 "a checkpoint written in the background is that of its update, at every stage and offload") {
  config.checkpoint = {.every = 1, .keep = 99};
  struct Way {
    std::int64_t stage;
    OffloadConfig offload;
    GradientType gradients = GradientType::fp32;
  };
  OffloadConfig const half{.optimizer = OffloadTarget::host, .ratio = 0.5};
  OffloadConfig delayed = half;
  delayed.delayed_update.start = 2;
  for (Way const& way :
       {Way{0, {}}, Way{1, half}, Way{2, delayed, GradientType::compute}, Way{3, {}}, Way{3, delayed}}) {
    INFO("stage " << way.stage << ", delayed " << way.offload.delays());
    config.zero.stage = way.stage;
    config.offload = way.offload;
    config.precision = {.compute = ComputeType::bf16, .gradients = way.gradients};
    config.checkpoint.in_background = false;
    std::string const waits = folder.file("waits"), goes_on = folder.file("goes on");
    Metrics const wanted = trained(config, waits, world);
    config.checkpoint.in_background = true;
    Metrics const found = trained(config, goes_on, world);
    CHECK(found.lines == wanted.lines);
    for (std::int64_t step = 1; step <= config.run.updates; ++step) {
      CheckpointReader const a(step_folder(waits, step)), b(step_folder(goes_on, step));
      CHECK(told(b.info()) == told(a.info()));
      CHECK(verify_checkpoint(step_folder(goes_on, step), {}, [](auto, auto) {}).faults.empty());
    }
    // To go on from each compares what was written with its hash.
    for (std::int64_t const step : {1, 4, 7}) {
      Metrics const resumed =
          trained(config, folder.file(fmt::format("from {}", step)), world, step_folder(goes_on, step));
      CHECK(resumed.hash() == wanted.hash());
      world.ranks.barrier();
    }
    if (world.rank() == 0) {
      for (auto const& name : {"waits", "goes on", "from 1", "from 4", "from 7"}) fs::remove_all(folder.file(name));
    }
    world.ranks.barrier();
  }
}

TEST_CASE_METHOD(RunFixture,
                 "memory for the copy is in the ledger from the start, and is the state's share of this rank") {
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    config.zero.stage = stage;
    auto const copy = [&](bool in_background, std::int64_t every = 1) {
      config.checkpoint.every = every;
      config.checkpoint.in_background = in_background;
      Ledger ledger;
      Corpus const corpus = open_corpus(config.data, config.model.vocabulary, config.model.context);
      TrainingSetup const setup{.config = config,
                                .batch = batch_shape(config.batch, world.size()),
                                .tokens = std::make_shared<CorpusTokens>(corpus, config.run.seed)};
      auto const training = make_training(setup, world, ledger);
      return ledger.bytes(Space::pinned, Category::snapshot) + ledger.bytes(Space::host, Category::snapshot);
    };
    auto const psi = parameter_count(architecture_of(config.model)->layout());
    double const share = 12.0 * static_cast<double>(psi) / world.size();
    CHECK(copy(false) == 0);
    CHECK(copy(true, 0) == 0);                            // saved at the end alone, at once
    CHECK(static_cast<double>(copy(true)) > 0.8 * share); // shards of a model so small differ
    CHECK(static_cast<double>(copy(true)) < 1.2 * share);
  }
}

TEST_CASE_METHOD(RunFixture, "a writer that fails is met as the deck says, and earlier checkpoints stay") { // CASES 37
  config.checkpoint = {.every = 2, .keep = 99, .in_background = true};
  config.zero.stage = 2;
  std::string const run = folder.file("run");
  {
    // Checkpoint files are too large from the start; metrics are not.
    std::optional<FileSizeLimit> limit;
    if (world.rank() == world.size() - 1) limit.emplace(20'000);
    auto const message = message_of<SharedError>([&] { run_trainer(config, run, world); });
    CHECK(contains(message, {"update 8 is not saved", "File too large"})); // the last
  }
  world.ranks.barrier();
  CHECK(Metrics(run).updates.size() == 8);
  CHECK(count_checkpoints(run) == 0);
  config.checkpoint.on_error = SaveFailure::stop;
  {
    std::optional<FileSizeLimit> limit;
    if (world.rank() == world.size() - 1) limit.emplace(20'000);
    auto const message = message_of<SharedError>([&] { run_trainer(config, run, world); });
    CHECK(contains(message, {"update 2 is not saved", "File too large"}));
  }
}

TEST_CASE_METHOD(RunFixture,
                 "ranks whose copies of the state differ end the run, also where it outlives failed saves") {
  if (world.size() == 1) return; // it has no copies
  config.checkpoint.every = 2;
  config.checkpoint.in_background = GENERATE(false, true);
  if (world.rank() == 1) config.optimizer.lr *= 2;
  std::string const run = folder.file("run");
  CHECK(contains(message_of<SharedError>([&] { run_trainer(config, run, world); }), {"copies of the model differ"}));
  world.ranks.barrier();
  CHECK(Metrics(run).updates.size() == 2);
  world.ranks.barrier();
}
