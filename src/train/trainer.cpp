#include "train/trainer.hpp"

#include "comm/agree.hpp"
#include "config/compute_type.hpp"
#include "core/format.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "io/run_folder.hpp"
#include "optim/schedule.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <system_error>

namespace kozero {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

template <class T>
Trainer<T>::Trainer(RunInput const& input, Communicator& comm, Ledger& ledger)
    : stop_(input.config.run.time_limit_s), input_(input), config_(input_.config), comm_(comm), ledger_(ledger),
      model_(config_.model, input_.batch.micro, config_.activations.recompute, Purpose::train, ledger),
      engine_(Plan(sharding_of(config_), comm.rank(), comm.size()), model_layout(config_.model),
              model_uses(config_.model), comm, ledger),
      feed_(input_.corpus, config_.run.seed, input_.batch, config_.model.context, comm.rank(), config_.model.vocabulary,
            ledger),
      progress_(comm.rank() == 0) {
  if (config_.precision.compute == ComputeType::fp16) loss_scale_.emplace(config_.precision.loss_scale);
}

/// State from the seed or a checkpoint, and the run's files.
template <class T>
void Trainer<T>::start() {
  if (input_.resume) {
    restore(*input_.resume);
  } else {
    engine_.initialise(lane_, config_.run.seed);
  }
  on_all_ranks(comm_, [&] {
    if (comm_.rank() != 0) return true;
    RunFolder const folder(input_.folder.string());
    if (input_.overwrite) folder.remove_checkpoints();
    folder.write_deck(input_.resolved_deck);
    metrics_.emplace(open_metrics(folder.metrics_file()));
    return true;
  });
}

template <class T>
void Trainer<T>::restore(std::filesystem::path const& checkpoint) {
  CheckpointInfo const info = on_all_ranks(comm_, [&] {
    CheckpointReader const reader(checkpoint, {comm_.rank(), comm_.size()});
    if (auto const scale = reader.info().pending_gradient_scale) {
      std::int64_t const t = reader.info().counters.updates_applied + 1;
      engine_.expect_pending({AdamWScalars(config_.optimizer, rate_of(t), t, *scale), *scale});
    }
    for (auto const& entry : engine_.state()) reader.read(entry);
    if (loss_scale_ && reader.info().loss_scale) loss_scale_->restore(*reader.info().loss_scale);
    return reader.info();
  });
  engine_.publish_master(lane_);
  std::string const hash = engine_.state_hash(lane_);
  if (hash != info.state_hash) {
    throw SharedError(fmt::format("checkpoint '{}' reads as state {} but says {} (its files do not belong together, or "
                                  "were changed); resume from another one",
                                  checkpoint.string(), hash, info.state_hash));
  }
  counters_ = info.counters;
  looked_at_ = counters_.updates_applied;
  std::error_code not_there;
  if (std::filesystem::equivalent(checkpoint, input_.folder / "checkpoints" / "latest", not_there)) {
    saved_at_ = counters_.batches_seen;
    hash_ = hash;
  }
  if (!config_.offload.delays()) drain(); // the run before may have delayed
}

template <class T>
MetricsFile Trainer<T>::open_metrics(std::string const& path) const {
  return input_.resume ? MetricsFile::resume(path, counters_.batches_seen) : MetricsFile::create(path);
}

template <class T>
RunEnd Trainer<T>::run() {
  start();
  while (next_update() <= config_.run.updates) {
    if (!one_batch()) return finish(RunEnd::stopped_early);
    if (due(config_.checkpoint.every)) save();
    if (due(config_.evaluate.every)) run_evaluation();
    looked_at_ = counters_.updates_applied;
  }
  drain();
  return finish(RunEnd::done);
}

/// Applies what is pending, where the run has an update left for it; else that stays for a longer run.
template <class T>
void Trainer<T>::drain() {
  if (counters_.updates_applied >= config_.run.updates) return;
  MovedSoFar const before{comm_.traffic(), engine_.link()};
  std::int64_t const applied = engine_.drain(lane_);
  if (applied == 0) return;
  if (batches_here_ > 0) moved_.note(before, {comm_.traffic(), engine_.link()});
  counters_.updates_applied += applied;
  saved_at_ = evaluated_at_ = -1; // whatever was saved and evaluated is of the state before
}

/// The number, from 1, of the update that the next batch's gradient is for. A pending update comes before it.
template <class T>
std::int64_t Trainer<T>::next_update() const {
  return counters_.updates_applied + (engine_.pending() ? 1 : 0) + 1;
}

template <class T>
double Trainer<T>::rate_of(std::int64_t update) const {
  return learning_rate(config_.optimizer, config_.schedule, config_.run.updates, update - 1);
}

/// Whether something that happens every so many updates is due: one of them was applied since the last look.
template <class T>
bool Trainer<T>::due(std::int64_t every) const {
  return every > 0 && counters_.updates_applied / every > looked_at_ / every;
}

/// Whether any rank has been asked to stop. In the same message `valid` becomes its sum over ranks. Collective.
template <class T>
bool Trainer<T>::stop_agreed(std::int64_t& valid) {
  std::array<std::int64_t, 2> sums = {valid, stop_.wanted() ? 1 : 0};
  comm_.sum(std::span<std::int64_t>(sums));
  valid = sums[0];
  if (sums[1] == 0) return false;
  auto const signals = comm_.gather(stop_.signal()); // one rank's is enough
  stop_reason_ = stop_reason(*std::max_element(signals.begin(), signals.end()));
  return true;
}

template <class T>
bool Trainer<T>::stop_agreed() {
  std::int64_t none = 0;
  return stop_agreed(none);
}

/// False when the ranks agree to stop instead; a batch that was begun then counts for nothing.
template <class T>
bool Trainer<T>::one_batch() {
  auto const start = std::chrono::steady_clock::now();
  std::int64_t valid = feed_.load_training(counters_.batches_seen);
  if (stop_agreed(valid)) return false;
  std::int64_t const t = next_update();
  StepInput const input{.valid = valid,
                        .optimizer = config_.optimizer,
                        .lr = rate_of(t),
                        .t = t,
                        .loss_scale = loss_scale_ ? loss_scale_->value() : 1.0};
  MovedSoFar const before{comm_.traffic(), engine_.link()};
  auto const step = train_step(lane_, model_, engine_, feed_, input, comm_, [this] { return stop_agreed(); });
  if (!step) return false;
  if (step->update.applied <= 1) moved_.note(before, {comm_.traffic(), engine_.link()});
  ++batches_here_;
  ++counters_.batches_seen;
  counters_.updates_applied += step->update.applied;
  counters_.updates_skipped += step->update.skipped ? 1 : 0;
  skips_in_row_ = step->update.skipped ? skips_in_row_ + 1 : 0;
  loss_ = step->loss;
  record(*step, input, seconds_since(start));
  if (loss_scale_) {
    adapt_loss_scale(step->update);
  } else if (skips_in_row_ >= config_.optimizer.max_skips) {
    give_up_after_skips(step->update.bad_tensor);
  }
  return true;
}

/// After a batch in fp16. Overflows are its business, so `max_skips` is not asked.
template <class T>
void Trainer<T>::adapt_loss_scale(UpdateReport const& update) {
  double const before = loss_scale_->value();
  LossScale::Verdict const verdict = update.skipped ? loss_scale_->overflow() : loss_scale_->clean();
  if (verdict == LossScale::Verdict::exhausted) {
    throw SharedError(fmt::format("the gradient overflows fp16 at the smallest loss scale, {} (first in {}, batch {}); "
                                  "lower optimizer.lr or use precision.compute: bf16, then resume from the last "
                                  "checkpoint",
                                  before, update.bad_tensor, counters_.batches_seen));
  }
  if (verdict == LossScale::Verdict::halved) {
    progress_.clear();
    log::info("loss scale {} -> {}", before, loss_scale_->value());
  }
}

template <class T>
void Trainer<T>::record(StepReport const& step, StepInput const& input, double seconds) {
  if (comm_.rank() != 0) return;
  double const tokens = static_cast<double>(input_.batch.global() * config_.model.context);
  metrics_->update({.batch = counters_.batches_seen,
                    .updates_applied = counters_.updates_applied,
                    .updates_skipped = counters_.updates_skipped,
                    .loss = step.loss,
                    .norm = step.update.norm,
                    .clip = step.update.clip,
                    .lr = input.lr,
                    .tokens_per_s = tokens / seconds,
                    .seconds = seconds,
                    .loss_scale = loss_scale_ ? std::optional(input.loss_scale) : std::nullopt,
                    .pending = engine_.pending() && !step.update.skipped});
  if (step.update.skipped) {
    progress_.clear();
    log::warn(
        "batch {}: update skipped (gradient norm is {}; the first bad tensor is {}); its gradient changes nothing",
        counters_.batches_seen, step.update.norm, step.update.bad_tensor);
  }
  double const mean_seconds = seconds_since(start_) / static_cast<double>(batches_here_);
  progress_.show({.update = counters_.updates_applied,
                  .updates = config_.run.updates,
                  .loss = step.loss,
                  .lr = input.lr,
                  .norm = step.update.norm,
                  .tokens_per_s = tokens / seconds,
                  .seconds_left = mean_seconds * static_cast<double>(config_.run.updates - counters_.updates_applied)});
}

template <class T>
void Trainer<T>::give_up_after_skips(std::string const& tensor) const {
  throw SharedError(fmt::format("{} updates were skipped in a row (the gradient is not finite, first in {}); lower "
                                "optimizer.lr or look at the data of batch {}, then resume from the last checkpoint",
                                skips_in_row_, tensor, counters_.batches_seen));
}

/// Mean over the validation windows that the deck asks for, or nothing when the ranks agree to stop on the way.
template <class T>
std::optional<double> Trainer<T>::validation_loss() {
  double loss = 0;
  std::int64_t valid = 0;
  std::int64_t const batches =
      evaluation_batches(input_.corpus.validation.windows, input_.batch, config_.evaluate.batches);
  for (std::int64_t b = 0; b < batches; ++b) {
    if (stop_agreed()) return std::nullopt;
    valid += feed_.load_evaluation(b);
    loss += evaluate_batch(lane_, model_, engine_, feed_);
  }
  comm_.sum(std::span(&loss, 1));
  comm_.sum(std::span(&valid, 1));
  return loss / static_cast<double>(std::max<std::int64_t>(valid, 1));
}

template <class T>
void Trainer<T>::run_evaluation() {
  if (input_.corpus.validation.windows == 0 || evaluated_at_ == counters_.batches_seen) return;
  auto const loss = validation_loss();
  if (!loss) return;
  val_loss_ = loss;
  evaluated_at_ = counters_.batches_seen;
  if (comm_.rank() != 0) return;
  metrics_->evaluation({counters_.batches_seen, counters_.updates_applied, *val_loss_});
  progress_.clear();
  log::info("update {:>6}/{}   loss {}   held-out loss {:.4f}   {} elapsed", counters_.updates_applied,
            config_.run.updates, loss_ ? fmt::format("{:.4f}", *loss_) : "-", *val_loss_,
            format_duration(seconds_since(start_)));
}

template <class T>
void Trainer<T>::save() {
  if (saved_at_ == counters_.batches_seen) return;
  std::string const hash = engine_.state_hash(lane_);
  CheckpointInfo const info{.counters = counters_,
                            .deck = input_.resolved_deck,
                            .ranks = comm_.size(),
                            .global_batch = input_.batch.global(),
                            .state_hash = hash,
                            .version = version(),
                            .text = input_.corpus.train.file->is_text(),
                            .loss_scale = loss_scale_ ? std::optional(loss_scale_->state()) : std::nullopt,
                            .pending_gradient_scale =
                                engine_.pending() ? std::optional(engine_.pending()->gradient_scale) : std::nullopt};
  auto const state = engine_.state();
  auto const path = save_checkpoint(input_.folder, info, state, config_.checkpoint.keep, comm_);
  saved_at_ = counters_.batches_seen;
  hash_ = hash;
  progress_.clear();
  log::info("saved {}", path.string());
}

/// Saves first, so that no evaluation stands between a signal and the checkpoint.
template <class T>
RunEnd Trainer<T>::finish(RunEnd end) {
  save();
  if (end == RunEnd::done) run_evaluation();
  if (comm_.rank() != 0) return end;
  std::string const reason = end == RunEnd::done ? "done" : stop_reason_.value_or("");
  metrics_->end({.updates_applied = counters_.updates_applied,
                 .updates_skipped = counters_.updates_skipped,
                 .batches_seen = counters_.batches_seen,
                 .loss = loss_,
                 .val_loss = val_loss_,
                 .state_hash = hash_,
                 .seconds = seconds_since(start_),
                 .reason = reason});
  progress_.clear();
  RankPlan const plan = plan_rank(config_, input_.batch, comm_.rank());
  for (auto const& line : usage_table(plan, ledger_, moved_)) log::info("{}", line);
  if (end == RunEnd::done) {
    log::info("done: {} updates in {}, state {}", counters_.updates_applied, format_duration(seconds_since(start_)),
              hash_);
  } else {
    log::warn("stopped by the {} at update {} of {}, state {}; go on with --resume", reason, counters_.updates_applied,
              config_.run.updates, hash_);
  }
  return end;
}

template class Trainer<float>;
template class Trainer<bf16>;
template class Trainer<fp16>;

namespace {

template <class T>
RunEnd train_in(RunInput const& input, Communicator& comm, Ledger& ledger) {
  auto const trainer = on_all_ranks(comm, [&] { return std::make_unique<Trainer<T>>(input, comm, ledger); });
  return trainer->run();
}

} // namespace

RunEnd train(RunInput const& input, Communicator& comm, Ledger& ledger) {
  return with_compute_type(input.config.precision.compute,
                           [&]<class T>(T) { return train_in<T>(input, comm, ledger); });
}

} // namespace kozero
