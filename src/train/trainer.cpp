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
#include <array>
#include <utility>

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

/// A job's end counts where the deck wants to be out before it.
StopTimes stop_times(RunInput const& input) {
  auto const& run = input.config.run;
  StopTimes times{.time_limit_s = run.time_limit_s, .job_end = {}, .before_end_s = run.before_job_end_s.value_or(0)};
  if (run.before_job_end_s) times.job_end = input.job_end;
  return times;
}

} // namespace

Trainer::Trainer(RunInput const& input, Group const& group, Ledger& ledger)
    : stop_(stop_times(input)), input_(input), group_(group), ledger_(ledger),
      training_(make_training(setup_of(input), group, ledger)), progress_(group.rank() == 0),
      saver_({.options = input_.config.checkpoint,
              .group = group_,
              .training = *training_,
              .find_folder = [this] { return find_folder(), input_.folder; },
              .describe_state = [this] { return describe_state(); },
              .stop = stop_,
              .progress = progress_}) {}

/// State from the seed or a checkpoint, and the run's files.
void Trainer::start() {
  if (input_.config.run.profile) profile().start(profile_capacity);
  if (input_.resume) {
    CheckpointInfo const info = training_->restore(*input_.resume);
    evaluation_due_ = info.evaluation_due;
    val_loss_ = info.held_out_loss;
    looked_at_ = info.counters.updates_applied;
    bool const newest = is_latest_checkpoint(*input_.resume, input_.folder, group_.ranks);
    saver_.note_resumed(info.state_hash, newest ? Saver::Newest::yes : Saver::Newest::no);
    if (!input_.config.offload.delays()) drain(); // the run before may have delayed
  } else {
    training_->initialise();
  }
  bool const evaluated = on_first_rank(group_.ranks, [&] {
    if (!input_.held_folder) input_.held_folder = std::make_shared<RunFolder>(input_.folder.string());
    if (input_.overwrite) input_.held_folder->remove_checkpoints();
    input_.held_folder->write_deck(input_.resolved_deck);
    metrics_.emplace(open_metrics());
    open_events();
    return metrics_->ends_evaluated();
  });
  if (any_rank(evaluated) && training_->counters().updates_applied == looked_at_) { // not one of before a drain
    evaluated_at_ = training_->counters().batches_seen;
    evaluation_due_ = false;
  }
}

/// Collective.
bool Trainer::any_rank(bool here) const {
  std::int64_t count = here ? 1 : 0;
  group_.ranks.sum(std::span(&count, 1));
  return count > 0;
}

MetricsFile Trainer::open_metrics() const {
  std::string const path = input_.held_folder->metrics_file();
  return input_.resume ? MetricsFile::resume(path, resume_point(*input_.resume, input_.folder))
                       : MetricsFile::create(path);
}

/// Where the deck asks for them.
void Trainer::open_events() {
  if (!input_.config.metrics.tensorboard) return;
  RunFolder const& folder = *input_.held_folder;
  events_.emplace(folder.path(), folder.metrics_file(), training_->counters().batches_seen + 1);
}

/// Rank 0's: follows a folder that was moved, and makes anew what was removed.
void Trainer::look_after_folder() {
  folder_seen_ = std::chrono::steady_clock::now();
  RunFolder& folder = *input_.held_folder;
  auto const found = folder.look();
  if (found == RunFolder::Found::made_anew) folder.write_deck(input_.resolved_deck);
  bool const anew = metrics_->keep_at(folder.metrics_file()) == MetricsFile::Found::written_anew;
  if (found == RunFolder::Found::made_anew) open_events(); // with what the metrics have
  if (anew && found == RunFolder::Found::in_place) {
    log::warn("'{}' was removed while the run goes on; its lines are written anew", folder.metrics_file());
  }
}

/// Where the run's folder now is, on all ranks. Collective.
void Trainer::find_folder() {
  std::string path = on_first_rank(group_.ranks, [&] {
    look_after_folder();
    return input_.held_folder->path();
  });
  group_.ranks.broadcast(path, 0);
  input_.folder = path;
}

RunOutcome Trainer::run() {
  start();
  try {
    return go_on();
  } catch (DataError const& error) {
    end_without_data(error);
  } catch (std::exception const& error) {
    if (saver_.is_under_way()) log::warn("{}. A save is under way, which is given up first", error.what());
    throw;
  }
}

/// The state is that after the last whole batch.
void Trainer::end_without_data(DataError const& error) {
  try {
    saver_.save_last();
  } catch (SharedError const& failure) { // what one rank has alone ends the job otherwise
    throw SharedError(fmt::format("{}. The state is not saved either: {}", error.what(), failure.what()));
  }
  char const* const then = error.exit_code() == exit_bad_input ? "correct the file, then go on with --resume"
                                                               : "go on from there with --resume once it can be read";
  throw SharedError(
      fmt::format("{}. The state of update {} is saved; {}", error.what(), training_->counters().updates_applied, then),
      error.exit_code());
}

RunOutcome Trainer::go_on() {
  if (evaluation_due_) run_evaluation(stop_asked());
  while (!training_->done()) {
    if (!one_batch()) return finish(RunEnd::stopped_early);
    saver_.after_batch();
    bool const saves = save_due();
    bool const evaluates_first = saves && input_.config.checkpoint.keep_best > 0;
    evaluation_due_ |= due(input_.config.evaluate.every) || evaluates_first;
    if (evaluates_first) run_evaluation(stop_asked());
    if (saves) saver_.save();
    if (evaluation_due_) run_evaluation(stop_asked());
    looked_at_ = training_->counters().updates_applied;
  }
  drain();
  return finish(RunEnd::done);
}

void Trainer::drain() {
  saver_.settle(); // of the state before; the last one is still to come
  MovedSoFar const before = training_->moved();
  if (training_->drain() == 0) return;
  if (batches_here_ > 0) moved_.note(before, training_->moved());
  saver_.note_change();
  evaluated_at_ = -1; // whatever was evaluated is of the state before
}

/// Whether something that happens every so many updates is due: one of them was applied since the last look.
bool Trainer::due(std::int64_t every) const {
  return every > 0 && training_->counters().updates_applied / every > looked_at_ / every;
}

bool Trainer::save_due() const {
  Every const& every = input_.config.checkpoint.every;
  return every.seconds ? saver_.time_is_up() : due(every.updates);
}

StopAsked Trainer::stop_asked() const {
  return [this] { return stop_.wanted(); };
}

/// One rank's reason is enough. Collective.
std::string Trainer::stop_reason_of_ranks() const {
  auto const reasons = group_.ranks.gather(stop_.reason());
  return stop_reason(*std::ranges::max_element(reasons));
}

/// False when the ranks agree to stop instead.
bool Trainer::one_batch() {
  auto const start = std::chrono::steady_clock::now();
  MovedSoFar const before = training_->moved();
  Heartbeat::Batch const beat;
  auto const batch = training_->step(stop_asked(), saver_.joined());
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

/// What one does after an error.
char const* Trainer::way_back() const {
  return saver_.hash().empty() ? "start anew (nothing has been saved yet)" : "resume from the last checkpoint";
}

void Trainer::look_at_loss_scale(BatchReport const& batch) {
  auto const& [used, next, verdict] = *batch.scaling;
  if (verdict == LossScale::Verdict::exhausted) {
    training_->settle();
    saver_.settle();
    throw SharedError(fmt::format("the gradient overflows fp16 at the smallest loss scale, {} (first in {}, batch {}); "
                                  "lower optimizer.lr or use precision.compute: bf16, then {}",
                                  used, batch.update.bad_tensor, training_->counters().batches_seen, way_back()));
  }
  if (verdict == LossScale::Verdict::halved) {
    progress_.clear();
    log::info("loss scale {} -> {}", used, next);
  }
}

void Trainer::look_at_skips(BatchReport const& batch) {
  if (skips_in_row_ < input_.config.optimizer.max_skips) return;
  training_->settle();
  saver_.settle();
  throw SharedError(fmt::format("{} updates were skipped in a row (the gradient is not finite, first in {}); lower "
                                "optimizer.lr or look at the data of batch {}, then {}",
                                skips_in_row_, batch.update.bad_tensor, training_->counters().batches_seen,
                                way_back()));
}

void Trainer::record(BatchReport const& batch, double seconds) {
  if (group_.rank() != 0) return;
  if (seconds_since(folder_seen_) >= 1) look_after_folder();
  Counters const& counters = training_->counters();
  double const tokens = static_cast<double>(input_.batch.global() * input_.config.model.context);
  UpdateRecord const line{.batch = counters.batches_seen,
                          .updates_applied = counters.updates_applied,
                          .updates_skipped = counters.updates_skipped,
                          .loss = batch.loss,
                          .norm = batch.update.norm,
                          .clip = batch.update.clip,
                          .lr = batch.lr,
                          .tokens_per_s = tokens / seconds,
                          .seconds = seconds,
                          .loss_scale = batch.scaling ? std::optional(batch.scaling->used) : std::nullopt,
                          .pending = training_->has_pending() && !batch.update.skipped};
  metrics_->update(line);
  if (events_) events_->update(line);
  if (batch.update.skipped) {
    progress_.clear();
    log::warn(
        "batch {}: update skipped (gradient norm is {}; the first bad tensor is {}); its gradient changes nothing",
        counters.batches_seen, batch.update.norm, batch.update.bad_tensor);
  }
  batch_seconds_ += seconds;
  if (due(input_.config.run.log_every)) log_update(batch);
  progress_.show({.update = counters.updates_applied,
                  .updates = input_.config.run.updates,
                  .loss = batch.loss,
                  .lr = batch.lr,
                  .norm = batch.update.norm,
                  .tokens_per_s = tokens / seconds,
                  .seconds_left = seconds_left()});
  if (log::lost() && !std::exchange(loss_of_log_noted_, true)) {
    metrics_->note(counters.batches_seen, "the log could not be written (its reader is gone or its disk full); lines "
                                          "are missing there");
  }
}

/// As fast as it went so far, evaluations and saves included.
double Trainer::seconds_left() const {
  double const a_batch = seconds_since(start_) / static_cast<double>(batches_here_);
  return a_batch * static_cast<double>(input_.config.run.updates - training_->counters().updates_applied);
}

/// A plain line: what a job's log shows between evaluations. Speed is that since the line before.
void Trainer::log_update(BatchReport const& batch) {
  auto const batches = static_cast<double>(batches_here_ - std::exchange(logged_batches_, batches_here_));
  double const seconds = batch_seconds_ - std::exchange(logged_seconds_, batch_seconds_);
  double const tokens = batches * static_cast<double>(input_.batch.global() * input_.config.model.context);
  progress_.clear();
  log::info("update {:>6}/{}   loss {:.4f}   norm {:.3g}   lr {:.2e}   {} tokens/s   {} + {} host   {} left",
            training_->counters().updates_applied, input_.config.run.updates, batch.loss, batch.update.norm, batch.lr,
            format_count(tokens / seconds), format_bytes(ledger_.bytes(Space::device)),
            format_bytes(ledger_.bytes(Space::host) + ledger_.bytes(Space::pinned)), format_duration(seconds_left()));
}

void Trainer::run_evaluation(StopAsked const& asked) {
  Counters const& counters = training_->counters();
  if (input_.corpus.validation.windows == 0 || evaluated_at_ == counters.batches_seen) {
    evaluation_due_ = false;
    return;
  }
  auto const loss = training_->evaluate(asked);
  if (!loss) return;
  val_loss_ = loss;
  evaluated_at_ = counters.batches_seen;
  evaluation_due_ = false;
  if (group_.rank() != 0) return;
  EvaluationRecord const line{counters.batches_seen, counters.updates_applied, *val_loss_};
  metrics_->evaluation(line);
  if (events_) events_->evaluation(line);
  progress_.clear();
  log::info("update {:>6}/{}   loss {}   held-out loss {:.4f}   {} elapsed", counters.updates_applied,
            input_.config.run.updates, loss_ ? fmt::format("{:.4f}", *loss_) : "-", *val_loss_,
            format_duration(seconds_since(start_)));
}

/// What checkpoint.h5 says of the state as it is, but for its hash.
CheckpointInfo Trainer::describe_state() {
  CheckpointInfo info = training_->checkpoint_info();
  info.deck = input_.resolved_deck;
  info.version = version();
  info.evaluation_due = evaluation_due_;
  if (evaluated_at_ == info.counters.batches_seen) info.held_out_loss = val_loss_;
  info.text = input_.corpus.train.file->is_text();
  info.training_data = input_.corpus.train.file->fingerprint();
  if (auto const* const file = input_.corpus.validation_file()) info.validation_data = file->fingerprint();
  if (metrics_) info.metrics = metrics_->mark();
  return info;
}

/// Saves first, so that no evaluation stands between a signal and the checkpoint.
RunOutcome Trainer::finish(RunEnd end) {
  bool const done = end == RunEnd::done;
  std::string const reason = done ? "done" : stop_reason_of_ranks();
  if (done && input_.config.checkpoint.keep_best > 0) run_evaluation(stop_asked());
  saver_.save_last();
  if (done) run_evaluation({}); // a run that is told to stop now is done all the same
  RunOutcome outcome{.end = end, .moved = moved_};
  Counters const& counters = training_->counters();
  double const seconds = seconds_since(start_);
  if (group_.rank() == 0) {
    metrics_->end({.updates_applied = counters.updates_applied,
                   .updates_skipped = counters.updates_skipped,
                   .batches_seen = counters.batches_seen,
                   .loss = loss_,
                   .val_loss = val_loss_,
                   .state_hash = saver_.hash(),
                   .seconds = seconds,
                   .reason = reason});
    progress_.clear();
  }
  if (input_.config.run.profile) {
    profile().stop();
    on_all_ranks(group_.ranks, [&] { return write_profile(input_.folder, group_.rank(), profile()), true; });
  }
  outcome.summary = done ? fmt::format("done: {} updates in {}, state {}", counters.updates_applied,
                                       format_duration(seconds), saver_.hash())
                         : fmt::format("stopped by the {} at update {} of {}, state {}; go on with --resume", reason,
                                       counters.updates_applied, input_.config.run.updates, saver_.hash());
  return outcome;
}

RunOutcome train(RunInput const& input, Group const& group, Ledger& ledger) {
  auto const trainer = on_all_ranks(group.ranks, [&] { return std::make_unique<Trainer>(input, group, ledger); });
  return trainer->run();
}

} // namespace kozero
