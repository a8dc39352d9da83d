#include "train/training.hpp"

#include "comm/agree.hpp"
#include "config/compute_type.hpp"
#include "model/families.hpp"
#include "optim/schedule.hpp"
#include "train/state_entries.hpp"
#include "train/training_of.hpp"

#include <algorithm>
#include <array>
#include <exception>

namespace kozero {

namespace {

/// The same batch, with each rank's micro-batches where the plan wants them.
BatchShape in_order_of(Plan const& plan, BatchShape shape) {
  shape.in_a_row = plan.in_a_row();
  return shape;
}

bool saves_beside_training(CheckpointConfig const& config) {
  return config.in_background && (config.every.seconds || config.every.updates > 0);
}

/// What the first rank that failed says, on all ranks. Collective.
void share_data_error(Ranks& ranks, Failure const& failure) {
  try {
    share_failure(ranks, failure);
  } catch (SharedError const& error) {
    throw DataError(error.what(), error.exit_code());
  }
}

} // namespace

template <class T>
TrainingOf<T>::TrainingOf(TrainingSetup const& setup, Group const& group, Ledger& ledger)
    : setup_(setup), group_(group),
      plan_(sharding_of(setup.config), group.rank(), group.size(), setup.batch.accumulate),
      workspace_(lane_, setup.config.precision.tf32 ? Fp32Products::tf32 : Fp32Products::exact, ledger),
      model_(setup.config.model, setup.batch.micro, setup.config.activations.recompute, Purpose::train, ledger),
      engine_(plan_, model_.layout(), model_.uses(), group, ledger),
      feed_(setup.tokens, in_order_of(plan_, setup.batch), setup.config.model.context, setup.config.model.vocabulary,
            group.rank(), ledger),
      batch_loss_(setup.batch, ledger) {
  if (setup.config.precision.compute == ComputeType::fp16) loss_scale_.emplace(setup.config.precision.loss_scale);
  if (!saves_beside_training(setup.config.checkpoint)) return;
  snapshot_.emplace(Snapshot{StateSnapshot(state_to_write(), pending_gradient_bytes(), ledger), {}, {}, {}});
  if (plan_.optimizer() == Plan::Keep::whole && plan_.ranks() > 1) return;
  snapshot_->hash.emplace(plan_, model_.layout(), snapshot_->state.copies(), group.ranks, ledger,
                          StateHash::DeviceAccess::reached);
}

template <class T>
TrainingOf<T>::~TrainingOf() {
  if (std::uncaught_exceptions() > 0) group_.collectives.abandon();
}

template <class T>
void TrainingOf<T>::initialise() {
  engine_.initialise(lane_, setup_.config.run.seed);
}

template <class T>
CheckpointInfo TrainingOf<T>::restore(std::filesystem::path const& checkpoint) {
  CheckpointInfo info = on_all_ranks(group_.ranks, [&] {
    CheckpointReader const reader(checkpoint, {group_.rank(), group_.size()});
    if (auto const scale = reader.info().pending_gradient_scale) {
      std::int64_t const t = reader.info().counters.updates_applied + 1;
      engine_.expect_pending({AdamWScalars(setup_.config.optimizer, rate_of(t), t, *scale), *scale});
    }
    reader.read(state(), architecture_of(setup_.config.model)->former_tensors(reader.info().format_version));
    if (loss_scale_ && reader.info().loss_scale) loss_scale_->restore(*reader.info().loss_scale);
    return reader.info();
  });
  engine_.publish_master(lane_);
  std::string const hash = state_hash();
  // An older version's hash is of another definition; each dataset was compared with its checksum all the same.
  if (info.format_version == checkpoint_format_version && hash != info.state_hash) {
    throw SharedError(fmt::format("checkpoint '{}' reads as state {} but says {} (its files do not belong together, or "
                                  "were changed); resume from another one",
                                  checkpoint.string(), hash, info.state_hash));
  }
  counters_ = info.counters;
  info.state_hash = hash;
  return info;
}

template <class T>
std::vector<StateEntry> TrainingOf<T>::state() const {
  return state_entries(model_.layout(), engine_.state());
}

/// Where all ranks hold copies, each writes a part.
template <class T>
std::vector<HeldState> TrainingOf<T>::state_to_write() const {
  auto held = engine_.state();
  if (plan_.optimizer() == Plan::Keep::shard) return held;
  for (HeldState& array : held) {
    Interval const part = Partition(array.interval.size(), plan_.ranks()).shard(plan_.rank());
    array.data = static_cast<unsigned char*>(array.data) + part.begin * size_of(array.type);
    array.interval = part;
  }
  return held;
}

template <class T>
std::vector<StateEntry> TrainingOf<T>::take_snapshot() {
  if (!snapshot_->hash) snapshot_->hex = state_hash();
  snapshot_->digests.clear();
  return on_all_ranks(group_.ranks, [&] {
    snapshot_->state.take(lane_, state_to_write());
    return state_entries(model_.layout(), snapshot_->state.copies());
  });
}

template <class T>
void TrainingOf<T>::prepare_snapshot_hash(std::function<void()> const& gets_on) {
  if (snapshot_->hash) snapshot_->digests = snapshot_->hash->prepare(gets_on);
}

template <class T>
std::string TrainingOf<T>::snapshot_hash() {
  return snapshot_->hash ? snapshot_->hash->hex(lane_, snapshot_->digests) : snapshot_->hex;
}

template <class T>
std::int64_t TrainingOf<T>::pending_gradient_bytes() const {
  if (!plan_.delays()) return 0;
  std::int64_t elements = 0;
  for (auto const& piece : plan_.pieces(model_.layout())) elements += piece.interval.size();
  return elements * size_of(plan_.gradients_as_computed() ? dtype_of<T> : DType::f32);
}

template <class T>
std::int64_t TrainingOf<T>::next_update() const {
  return counters_.updates_applied + (has_pending() ? 1 : 0) + 1;
}

template <class T>
double TrainingOf<T>::rate_of(std::int64_t update) const {
  if (setup_.rate) return setup_.rate(update);
  Config const& config = setup_.config;
  return learning_rate(config.optimizer, config.schedule, config.run.updates, update - 1);
}

template <class T>
std::optional<double> TrainingOf<T>::loss_scale() const {
  return loss_scale_ ? std::optional(loss_scale_->value()) : std::nullopt;
}

/// Loads tokens; the valid targets of all ranks, or nothing where any has been asked to stop. One message says both,
/// and that a rank's tokens cannot be read; a stop wins over that, as the state is whole either way. In it `joined`
/// become their sums over ranks.
template <class T>
template <class Load>
std::optional<std::int64_t> TrainingOf<T>::load_agreed(StopAsked const& asked, Load const& load,
                                                       std::span<std::int64_t> joined) const {
  KOZERO_ASSERT(joined.size() <= most_joined);
  std::array<std::int64_t, 3 + most_joined> sums = {}; // targets, ranks that stop, ranks that failed; what others join
  auto const others = std::span(sums).subspan(3, joined.size());
  std::ranges::copy(joined, others.begin());
  Failure const failure = failure_of([&] { sums[0] = load(); });
  sums[2] = failure.exit_code == exit_done ? 0 : 1;
  sums[1] = asked && asked() ? 1 : 0; // the disk may have taken its time
  group_.ranks.sum(std::span(sums).first(3 + joined.size()));
  std::ranges::copy(others, joined.begin());
  if (sums[1] > 0) return std::nullopt;
  if (sums[2] > 0) share_data_error(group_.ranks, failure);
  return sums[0];
}

/// Whether any rank has been asked to stop.
template <class T>
bool TrainingOf<T>::stop_agreed(StopAsked const& asked) const {
  std::int64_t stopping = asked && asked() ? 1 : 0;
  group_.ranks.sum(std::span(&stopping, 1));
  return stopping > 0;
}

template <class T>
std::optional<BatchReport> TrainingOf<T>::step(StopAsked const& asked, std::span<std::int64_t> joined) {
  auto const valid = load_agreed(
      asked, [this] { return feed_.load_training(counters_.batches_seen); }, joined);
  if (!valid) return std::nullopt;
  std::int64_t const t = next_update();
  StepInput const input{
      .valid = *valid, .optimizer = setup_.config.optimizer, .lr = rate_of(t), .t = t, .loss_scale = loss_scale()};
  StopAgreed const between = [&] { return stop_agreed(asked); };
  auto const step = train_step(lane_, model_, engine_, feed_, batch_loss_, input, group_.ranks, between);
  if (!step) return std::nullopt;
  return account_for(*step, input);
}

template <class T>
BatchReport TrainingOf<T>::account_for(StepReport const& step, StepInput const& input) {
  ++counters_.batches_seen;
  counters_.updates_applied += step.update.applied;
  counters_.updates_skipped += step.update.skipped ? 1 : 0;
  BatchReport report{step.loss, step.update, input.lr};
  if (loss_scale_) {
    auto const verdict = step.update.skipped ? loss_scale_->overflow() : loss_scale_->clean();
    report.scaling = {.used = *input.loss_scale, .next = loss_scale_->value(), .verdict = verdict};
  }
  return report;
}

template <class T>
std::int64_t TrainingOf<T>::drain() {
  std::int64_t const applied = counters_.updates_applied < setup_.config.run.updates ? engine_.drain(lane_) : 0;
  counters_.updates_applied += applied;
  engine_.settle(lane_);
  return applied;
}

template <class T>
std::optional<double> TrainingOf<T>::evaluate(StopAsked const& asked) {
  double loss = 0;
  std::int64_t valid = 0;
  std::int64_t const batches = feed_.evaluation_batches(setup_.config.evaluate.batches);
  for (std::int64_t b = 0; b < batches; ++b) {
    auto const targets = load_agreed(asked, [&] { return feed_.load_evaluation(b); });
    if (!targets) return std::nullopt;
    valid += *targets;
    loss += evaluate_batch(lane_, model_, engine_, feed_, batch_loss_, group_.ranks);
  }
  return loss / static_cast<double>(std::max<std::int64_t>(valid, 1));
}

template <class T>
double TrainingOf<T>::loss_of(std::int64_t batch) {
  std::int64_t const valid = *load_agreed({}, [&] { return feed_.load_training(batch); });
  return evaluate_batch(lane_, model_, engine_, feed_, batch_loss_, group_.ranks) /
         static_cast<double>(std::max<std::int64_t>(valid, 1));
}

template <class T>
CheckpointInfo TrainingOf<T>::checkpoint_info() const {
  CheckpointInfo info{.counters = counters_,
                      .ranks = group_.size(),
                      .global_batch = setup_.batch.global(),
                      .loss_scale = loss_scale_ ? std::optional(loss_scale_->state()) : std::nullopt};
  if (auto const& pending = engine_.pending()) info.pending_gradient_scale = pending->gradient_scale;
  return info;
}

template <class T>
UpdateTraffic TrainingOf<T>::planned_traffic(std::optional<ExchangeWay> const& way) const {
  std::int64_t on_host = 0;
  for (auto const& piece : plan_.pieces(model_.layout())) {
    on_host += piece.space == Space::host ? piece.interval.size() : 0;
  }
  UpdateShape const update{.parameter_bytes = size_of(dtype_of<T>),
                           .gradient_bytes = size_of(plan_.gradients_as_computed() ? dtype_of<T> : DType::f32),
                           .host_elements = on_host,
                           .way = way};
  return plan_traffic(plan_, model_.layout(), model_.uses(), update);
}

template class TrainingOf<float>;
template class TrainingOf<bf16>;
template class TrainingOf<fp16>;

std::unique_ptr<Training> make_training(TrainingSetup const& setup, Group const& group, Ledger& ledger) {
  return with_compute_type(setup.config.precision.compute, [&]<class T>(T) -> std::unique_ptr<Training> {
    return std::make_unique<TrainingOf<T>>(setup, group, ledger);
  });
}

} // namespace kozero
