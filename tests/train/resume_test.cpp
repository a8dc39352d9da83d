// Stopped and resumed ≡ never stopped.
#include "support/catch.hpp"
#include "support/faulty_collectives.hpp"
#include "support/training.hpp"

#include "core/signal_listener.hpp"

#include <csignal>

using namespace kozero;
using namespace kozero::test;

namespace {

/// The last rank hears a signal in batch `batch`, counted from 0. It stops after it.
FaultyCollectives stopped_in(Group const& world, Config const& config, std::int64_t batch, int signal) {
  std::int64_t const moment = batch * reductions_a_batch(config, world.size());
  return {world, [&world, moment, signal](std::int64_t reduction, auto const&) {
            if (reduction == moment && world.rank() == world.size() - 1) SignalListener::hear(signal);
          }};
}

/// A run that stops for that signal.
void run_and_stop(Group const& world, Config const& config, std::string const& run, std::int64_t batch, int signal) {
  FaultyCollectives signalled = stopped_in(world, config, batch, signal);
  CHECK(run_trainer(config, run, signalled) == RunEnd::stopped_early);
  SignalListener::forget();
}

/// Resumed, a run ends as one that was never stopped, with one end and no update twice.
void check_resumed(Group const& world, Config const& config, std::string const& run, Metrics const& whole) {
  Metrics const resumed = trained(config, run, world, resolve_checkpoint(run));
  CHECK(resumed.hash() == whole.hash());
  CHECK(resumed.lines == whole.lines);
}

std::filesystem::path step_folder(std::string const& run, int step) {
  return run + fmt::format("/checkpoints/step-{:08}", step);
}

} // namespace

TEST_CASE_METHOD(RunFixture, "stopped by a signal and resumed has the bits of never stopped, at every stage") {
  config.data.validation = "0.1";
  config.evaluate.every = 2;
  config.checkpoint = {.every = 3, .keep = 2};
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16}) {
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      INFO("stage " << stage << ", compute type " << static_cast<int>(compute));
      config.precision.compute = compute;
      config.zero.stage = stage;
      config.batch.accumulate = 1 + stage % 2;
      Metrics const whole = trained(config, folder.file("whole"), world);

      std::string const run = folder.file("stopped");
      run_and_stop(world, config, run, 4, stage % 2 == 0 ? SIGUSR1 : SIGTERM);
      Metrics const first_part(run);
      // The signal comes in a reduction of batch 5. At stage 3 that is one of its first micro-batch of two: it ends
      // there.
      CHECK(first_part.updates.size() == (stage == 3 ? 4 : 5));
      CHECK(first_part.ends.back().at("reason") == (stage % 2 == 0 ? "signal USR1" : "signal TERM"));
      CHECK(first_part.hash() != whole.hash());

      check_resumed(world, config, run, whole);
    }
  }
}

TEST_CASE_METHOD(
    RunFixture,
    "an offloaded run with delayed updates, stopped with one pending, resumes to the bits of never stopped") {
  config.precision = {.compute = ComputeType::bf16, .gradients = GradientType::compute};
  config.checkpoint = {.every = 2, .keep = 2};
  config.offload = {.optimizer = OffloadTarget::host, .ratio = 0.5};
  for (std::int64_t const start : {1, 4, 5, 6, 8}) {
    config.zero.stage = 1 + start % 3;
    config.batch.accumulate = 1 + start % 2;
    config.offload.delayed_update.start = start;
    INFO("start " << start << ", stage " << config.zero.stage);
    Metrics const whole = trained(config, folder.file("whole"), world);
    std::string const run = folder.file("stopped");
    run_and_stop(world, config, run, 4, SIGUSR1);
    auto const stopped = resolve_checkpoint(run);
    CHECK(CheckpointReader(stopped).info().pending_gradient_scale.has_value() ==
          (start < 5)); // or batch 5 is abandoned
    check_resumed(world, config, run, whole);
  }
}

TEST_CASE_METHOD(RunFixture,
                 "the last update of a delayed run is saved, evaluated and told, whatever was done before it") {
  config.data.validation = "0.1";
  config.zero.stage = 2;
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {2}};
  config.run.updates = 5;
  config.checkpoint.every = 100;
  Metrics const seldom = trained(config, folder.file("seldom"), world);
  config.checkpoint.every = 1; // the last batch is saved before the last update
  config.evaluate.every = 1;
  std::string const run = folder.file("often");
  Metrics const often = trained(config, run, world);
  CHECK(often.hash() == seldom.hash());
  CHECK(often.ends.back().at("val_loss") == seldom.ends.back().at("val_loss"));
  CheckpointReader const last(resolve_checkpoint(run));
  CHECK(last.info().counters.updates_applied == 5);
  CHECK(last.info().state_hash == seldom.hash());
  CHECK_FALSE(last.info().pending_gradient_scale.has_value());
}

TEST_CASE_METHOD(RunFixture, "a pending update beyond the run's end stays pending") {
  config.zero.stage = 2;
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {1}};
  std::string const run = folder.file("run");
  run_and_stop(world, config, run, 3, SIGTERM); // 3 applied, the 4th pending
  config.run.updates = 3;
  CHECK(trained(config, run, world, resolve_checkpoint(run)).ends.back().at("updates_applied") == 3);
  CHECK(CheckpointReader(resolve_checkpoint(run)).info().pending_gradient_scale.has_value());
}

TEST_CASE_METHOD(RunFixture, "a pending gradient of fp16 goes on in bf16") { // CASES 12: fp16 was no good
  config.zero.stage = 2;
  config.precision = {.compute = ComputeType::fp16, .gradients = GradientType::compute};
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {1}};
  std::string const run = folder.file("run");
  run_and_stop(world, config, run, 3, SIGTERM);
  Metrics const same = trained(config, folder.file("same"), world, resolve_checkpoint(run));
  config.precision.compute = ComputeType::bf16;
  Metrics const other = trained(config, folder.file("other"), world, resolve_checkpoint(run));
  CHECK(other.ends.back().at("updates_applied") == 8);
  CHECK(largest_difference(other.losses(), same.losses()) < 1e-2);
}

TEST_CASE_METHOD(RunFixture, "a pending gradient that fp16 may not hold is refused, with the keys to resume with") {
  config.zero.stage = 2;
  config.precision = {.compute = ComputeType::fp16, .loss_scale = {.initial = 0x1p20}}; // gradients of fp32 hold that
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {1}};
  std::string const run = folder.file("run");
  run_and_stop(world, config, run, 3, SIGTERM);
  config.precision.gradients = GradientType::compute;
  auto const message = message_of<SharedError>([&] { run_trainer(config, run, world, resolve_checkpoint(run)); });
  CHECK(contains(message, {"/gradient'", "is f32 (this run wants f16, whose range may be too small", "resume with"}));
}

TEST_CASE_METHOD(RunFixture,
                 "a checkpoint and an evaluation that fall due by the update that a resume applies are made") {
  config.zero.stage = 2;
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {1}};
  std::string const run = folder.file("run");
  run_and_stop(world, config, run, 3, SIGTERM); // 3 applied, the 4th pending
  config.offload.delayed_update.start.reset();
  config.checkpoint.every = 4;
  config.run.updates = 7;
  trained(config, run, world, resolve_checkpoint(run));
  CHECK(std::filesystem::exists(step_folder(run, 5))); // after the first batch, which found 4 applied
}

TEST_CASE_METHOD(RunFixture, "a pending update is applied at once by a run that does not delay") {
  config.zero.stage = 2;
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {2}};
  config.run.updates = 4;
  // One batch before the end a run leaves, with one update pending. Drained, it has the state of a run of 3 updates.
  config.schedule.kind = ScheduleKind::constant;
  std::string const run = folder.file("stopped");
  run_and_stop(world, config, run, 2, SIGTERM);
  config.run.updates = 3;
  Metrics const whole = trained(config, folder.file("whole"), world);
  for (std::int64_t const stage : {0, 1, 3}) {
    Config other = config;
    other.zero.stage = stage;
    other.offload = {.optimizer = stage == 1 ? OffloadTarget::host : OffloadTarget::none};
    std::string const next = folder.file(fmt::format("next{}", stage));
    Metrics const resumed = trained(other, next, world, resolve_checkpoint(run));
    CHECK(resumed.hash() == whole.hash());
    CHECK(resumed.ends.back().at("updates_applied") == 3);
  }
}

TEST_CASE_METHOD(RunFixture, "offload is switched on and off by a resume without a bit changing") { // CASES 15
  config.zero.stage = 2;
  config.run.updates = 6;
  config.schedule.kind = ScheduleKind::constant;
  Metrics const whole = trained(config, folder.file("whole"), world);
  std::string const run = folder.file("run");
  struct Part {
    std::int64_t updates, stage;
    OffloadTarget optimizer;
    double ratio;
  };
  for (Part const& part : {Part{2, 3, OffloadTarget::host, 0.5}, Part{3, 0, OffloadTarget::none, 1},
                           Part{4, 1, OffloadTarget::host, 1}, Part{6, 2, OffloadTarget::none, 1}}) {
    config.run.updates = part.updates;
    config.zero.stage = part.stage;
    config.offload = {.optimizer = part.optimizer, .ratio = part.ratio};
    std::optional<std::filesystem::path> from;
    if (part.updates > 2) from = resolve_checkpoint(run);
    CHECK(run_trainer(config, run, world, from) == RunEnd::done);
  }
  CHECK(Metrics(run).hash() == whole.hash());
}

TEST_CASE_METHOD(RunFixture, "a stop right after a skipped update resumes after it") {
  config.run.updates = 4;
  config.checkpoint = {.every = 1, .keep = 2};
  std::int64_t const in_batch_3 = 2 * reductions_a_batch(config, world.size());
  auto const spoil = [&](std::int64_t reduction, auto const& gradients) {
    if (reduction == in_batch_3) gradients.set(0, std::nanf(""));
  };
  FaultyCollectives faulty(world, spoil);
  Metrics const whole = trained(config, folder.file("whole"), faulty);
  CHECK(whole.updates.size() == 5);

  // Two updates are applied before and after batch 3, so the second checkpoint takes the place of the first.
  FaultyCollectives stopped(world, [&](std::int64_t reduction, auto const& gradients) {
    spoil(reduction, gradients);
    if (reduction == in_batch_3) SignalListener::hear(SIGINT);
  });
  std::string const run = folder.file("stopped");
  CHECK(run_trainer(config, run, stopped) == RunEnd::stopped_early);
  SignalListener::forget();
  check_resumed(world, config, run, whole);
}

TEST_CASE_METHOD(RunFixture, "the time limit stops a run, which can be resumed") {
  config.run.updates = 3;
  config.zero.stage = 1;
  Metrics const whole = trained(config, folder.file("whole"), world);

  std::string const run = folder.file("limited");
  config.run.time_limit_s = 1e-9; // over before the first update
  CHECK(run_trainer(config, run, world) == RunEnd::stopped_early);
  CHECK(Metrics(run).updates.empty());
  CHECK(Metrics(run).ends.back().at("reason") == "time limit");
  config.run.time_limit_s.reset();
  CHECK(trained(config, run, world, resolve_checkpoint(run)).lines == whole.lines);
}

TEST_CASE_METHOD(RunFixture,
                 "a checkpoint holds the same state for every stage and number of ranks, and evaluates the same") {
  Alone self;
  // 7 windows in batches of 6: of the second one some ranks have nothing.
  config.data.validation = folder.write("held out", text_of(bytes_of_windows(7, odd_model().context)));
  config.batch = {.micro = 1, .accumulate = {}, .global = 6};
  config.run.updates = 6;
  config.zero.stage = 2;
  config.checkpoint = {.every = 3, .keep = 2};
  std::string const run = folder.file("ranks");
  Metrics const whole = trained(config, run, world);
  auto const half_way = step_folder(run, 3);
  std::string const hash = CheckpointReader(half_way).info().state_hash;
  REQUIRE(hash != whole.hash());

  // With no update left, a resumed run only reads and evaluates.
  Config reads = config;
  reads.run.updates = 3;
  std::vector<double> evaluations;
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    reads.zero.stage = stage;
    Metrics const read = trained(reads, folder.file(fmt::format("read {}", stage)), world, half_way);
    CHECK(read.hash() == hash);
    evaluations.push_back(read.ends.back().at("val_loss"));
    CHECK(evaluations.back() == evaluations.front());
  }

  if (world.rank() == 0) {
    Metrics const read = trained(reads, folder.file("read alone"), self, half_way);
    CHECK(read.hash() == hash);
    CHECK(relative_difference(read.ends.back().at("val_loss"), evaluations.front()) < 1e-6);
    Metrics const resumed = trained(config, folder.file("resumed alone"), self, half_way);
    std::vector<double> const before = whole.losses();
    CHECK(resumed.updates.size() == 3);
    CHECK(largest_difference(resumed.losses(), {before.begin() + 3, before.end()}) < 1e-5);
    trained(config, folder.file("alone"), self);
  }
  world.ranks.barrier();

  auto const alone_half_way = step_folder(folder.file("alone"), 3);
  reads.zero.stage = 3;
  CHECK(trained(reads, folder.file("read"), world, alone_half_way).hash() ==
        CheckpointReader(alone_half_way).info().state_hash);
  config.zero.stage = 3;
  Metrics const resumed = trained(config, folder.file("resumed"), world, alone_half_way);
  std::vector<double> const before = Metrics(folder.file("alone")).losses();
  CHECK(largest_difference(resumed.losses(), {before.begin() + 3, before.end()}) < 1e-5);
}
