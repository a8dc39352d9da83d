#include "train/trainer.hpp"

#include "comm/agree.hpp"
#include "core/format.hpp"
#include "core/heartbeat.hpp"
#include "core/log.hpp"
#include "core/profile.hpp"
#include "core/version.hpp"
#include "io/profile_file.hpp"
#include "io/run_folder.hpp"

#include <algorithm>

namespace kozero {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TrainingSetup setup_of(RunInput const& input) {
  return {.config = input.config,
          .batch = input.batch,
          .tokens = std::make_shared<CorpusTokens>(input.corpus, input.config.run.seed)};
}

} // namespace

Trainer::Trainer(RunInput const& input, Group const& group, Ledger& ledger)
    : stop_(input.config.run.time_limit_s), input_(input), group_(group),
      training_(make_training(setup_of(input), group, ledger)), progress_(group.rank() == 0) {}

/// State from the seed or a checkpoint, and the run's files.
void Trainer::start() {
  if (input_.config.run.profile) profile().start(profile_capacity);
  if (input_.resume) {
    hash_ = training_->restore(*input_.resume);
    looked_at_ = training_->counters().updates_applied;
    if (is_latest_checkpoint(*input_.resume, input_.folder, group_.ranks))
      saved_at_ = training_->counters().batches_seen;
    if (!input_.config.offload.delays()) drain(); // the run before may have delayed
  } else {
    training_->initialise();
  }
  on_all_ranks(group_.ranks, [&] {
    if (group_.rank() != 0) return true;
    RunFolder const folder(input_.folder.string());
    if (input_.overwrite) folder.remove_checkpoints();
    folder.write_deck(input_.resolved_deck);
    metrics_.emplace(open_metrics(folder.metrics_file()));
    return true;
  });
}

MetricsFile Trainer::open_metrics(std::string const& path) const {
  return input_.resume ? MetricsFile::resume(path, training_->counters().batches_seen) : MetricsFile::create(path);
}

RunOutcome Trainer::run() {
  start();
  while (!training_->done()) {
    if (!one_batch()) return finish(RunEnd::stopped_early);
    if (due(input_.config.checkpoint.every)) save();
    if (due(input_.config.evaluate.every)) run_evaluation();
    looked_at_ = training_->counters().updates_applied;
  }
  drain();
  return finish(RunEnd::done);
}

void Trainer::drain() {
  MovedSoFar const before = training_->moved();
  if (training_->drain() == 0) return;
  if (batches_here_ > 0) moved_.note(before, training_->moved());
  saved_at_ = evaluated_at_ = -1; // whatever was saved and evaluated is of the state before
}

/// Whether something that happens every so many updates is due: one of them was applied since the last look.
bool Trainer::due(std::int64_t every) const {
  return every > 0 && training_->counters().updates_applied / every > looked_at_ / every;
}

StopAsked Trainer::stop_asked() const {
  return [this] { return stop_.wanted(); };
}

/// One rank's signal is enough. Collective.
std::string Trainer::stop_reason_of_ranks() const {
  auto const signals = group_.ranks.gather(stop_.signal());
  return stop_reason(*std::max_element(signals.begin(), signals.end()));
}

/// False when the ranks agree to stop instead.
bool Trainer::one_batch() {
  auto const start = std::chrono::steady_clock::now();
  MovedSoFar const before = training_->moved();
  Heartbeat::Batch const beat;
  auto const batch = training_->step(stop_asked());
  if (!batch) return false;
  beat.done();
  if (batch->update.applied <= 1) moved_.note(before, training_->moved());
  ++batches_here_;
  skips_in_row_ = batch->update.skipped ? skips_in_row_ + 1 : 0;
  loss_ = batch->loss;
  record(*batch, seconds_since(start));
  if (batch->scaling) {
    look_at_loss_scale(*batch); // overflows are its business, so `max_skips` is not asked
  } else {
    look_at_skips(*batch);
  }
  return true;
}

void Trainer::look_at_loss_scale(BatchReport const& batch) {
  auto const& [used, next, verdict] = *batch.scaling;
  if (verdict == LossScale::Verdict::exhausted) {
    training_->settle();
    throw SharedError(fmt::format("the gradient overflows fp16 at the smallest loss scale, {} (first in {}, batch {}); "
                                  "lower optimizer.lr or use precision.compute: bf16, then resume from the last "
                                  "checkpoint",
                                  used, batch.update.bad_tensor, training_->counters().batches_seen));
  }
  if (verdict == LossScale::Verdict::halved) {
    progress_.clear();
    log::info("loss scale {} -> {}", used, next);
  }
}

void Trainer::look_at_skips(BatchReport const& batch) {
  if (skips_in_row_ < input_.config.optimizer.max_skips) return;
  training_->settle();
  throw SharedError(fmt::format("{} updates were skipped in a row (the gradient is not finite, first in {}); lower "
                                "optimizer.lr or look at the data of batch {}, then resume from the last checkpoint",
                                skips_in_row_, batch.update.bad_tensor, training_->counters().batches_seen));
}

void Trainer::record(BatchReport const& batch, double seconds) {
  if (group_.rank() != 0) return;
  Counters const& counters = training_->counters();
  std::int64_t const updates = input_.config.run.updates;
  double const tokens = static_cast<double>(input_.batch.global() * input_.config.model.context);
  metrics_->update({.batch = counters.batches_seen,
                    .updates_applied = counters.updates_applied,
                    .updates_skipped = counters.updates_skipped,
                    .loss = batch.loss,
                    .norm = batch.update.norm,
                    .clip = batch.update.clip,
                    .lr = batch.lr,
                    .tokens_per_s = tokens / seconds,
                    .seconds = seconds,
                    .loss_scale = batch.scaling ? std::optional(batch.scaling->used) : std::nullopt,
                    .pending = training_->has_pending() && !batch.update.skipped});
  if (batch.update.skipped) {
    progress_.clear();
    log::warn(
        "batch {}: update skipped (gradient norm is {}; the first bad tensor is {}); its gradient changes nothing",
        counters.batches_seen, batch.update.norm, batch.update.bad_tensor);
  }
  double const mean_seconds = seconds_since(start_) / static_cast<double>(batches_here_);
  progress_.show({.update = counters.updates_applied,
                  .updates = updates,
                  .loss = batch.loss,
                  .lr = batch.lr,
                  .norm = batch.update.norm,
                  .tokens_per_s = tokens / seconds,
                  .seconds_left = mean_seconds * static_cast<double>(updates - counters.updates_applied)});
}

void Trainer::run_evaluation() {
  Counters const& counters = training_->counters();
  if (input_.corpus.validation.windows == 0 || evaluated_at_ == counters.batches_seen) return;
  auto const loss = training_->evaluate(stop_asked());
  if (!loss) return;
  val_loss_ = loss;
  evaluated_at_ = counters.batches_seen;
  if (group_.rank() != 0) return;
  metrics_->evaluation({counters.batches_seen, counters.updates_applied, *val_loss_});
  progress_.clear();
  log::info("update {:>6}/{}   loss {}   held-out loss {:.4f}   {} elapsed", counters.updates_applied,
            input_.config.run.updates, loss_ ? fmt::format("{:.4f}", *loss_) : "-", *val_loss_,
            format_duration(seconds_since(start_)));
}

void Trainer::save() {
  std::int64_t const batches_seen = training_->counters().batches_seen;
  if (saved_at_ == batches_seen) return;
  training_->settle();
  CheckpointInfo info = training_->checkpoint_info();
  info.deck = input_.resolved_deck;
  info.state_hash = training_->state_hash();
  info.version = version();
  info.text = input_.corpus.train.file->is_text();
  auto const path =
      save_checkpoint(input_.folder, info, training_->state(), input_.config.checkpoint.keep, group_.ranks);
  saved_at_ = batches_seen;
  hash_ = info.state_hash;
  progress_.clear();
  log::info("saved {}", path.string());
}

/// Saves first, so that no evaluation stands between a signal and the checkpoint.
RunOutcome Trainer::finish(RunEnd end) {
  bool const done = end == RunEnd::done;
  std::string const reason = done ? "done" : stop_reason_of_ranks();
  save();
  if (done) run_evaluation();
  RunOutcome outcome{.end = end, .moved = moved_};
  Counters const& counters = training_->counters();
  double const seconds = seconds_since(start_);
  if (group_.rank() == 0) {
    metrics_->end({.updates_applied = counters.updates_applied,
                   .updates_skipped = counters.updates_skipped,
                   .batches_seen = counters.batches_seen,
                   .loss = loss_,
                   .val_loss = val_loss_,
                   .state_hash = hash_,
                   .seconds = seconds,
                   .reason = reason});
    progress_.clear();
  }
  if (input_.config.run.profile) {
    profile().stop();
    on_all_ranks(group_.ranks, [&] { return write_profile(input_.folder, group_.rank(), profile()), true; });
  }
  outcome.summary =
      done ? fmt::format("done: {} updates in {}, state {}", counters.updates_applied, format_duration(seconds), hash_)
           : fmt::format("stopped by the {} at update {} of {}, state {}; go on with --resume", reason,
                         counters.updates_applied, input_.config.run.updates, hash_);
  return outcome;
}

RunOutcome train(RunInput const& input, Group const& group, Ledger& ledger) {
  auto const trainer = on_all_ranks(group.ranks, [&] { return std::make_unique<Trainer>(input, group, ledger); });
  return trainer->run();
}

} // namespace kozero
