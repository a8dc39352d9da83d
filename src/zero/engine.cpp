#include "zero/engine.hpp"

#include "core/between_launches.hpp"
#include "core/profile.hpp"
#include "kernels/flat.hpp"

#include <algorithm>
#include <cmath>

namespace kozero {

namespace {

template <class T>
OptimizerState::MasterOf master_in(ParamStore<T>& params) {
  if constexpr (ParamStore<T>::is_master) {
    return [&params](Piece const& piece) { return params.updated(piece); };
  }
  return {};
}

} // namespace

template <class T>
Engine<T>::Engine(Plan const& plan, ModelLayout layout, std::vector<UnitUses> uses, Group const& group, Ledger& ledger)
    : plan_(plan), layout_(std::move(layout)), uses_(std::move(uses)), group_(group),
      params_(make_param_store<T>(plan_, layout_, uses_, group.collectives, ledger)),
      grads_(make_grad_store(plan_, dtype_of<T>, layout_, uses_, group.collectives, ledger, link_)),
      check_(plan_, layout_, group.ranks, ledger), optimizer_(plan_, layout_, master_in(*params_), ledger),
      host_update_(plan_, optimizer_, ledger, link_), hash_(plan_, layout_, optimizer_.held(), group.ranks, ledger) {}

template <class T>
void Engine<T>::initialise(Lane const& lane, std::int64_t seed) {
  optimizer_.initialise(lane, layout_, seed);
  publish_master(lane);
}

template <class T>
void Engine<T>::publish_master(Lane const& lane) {
  LinkTraffic const before = link_;
  params_->settle(lane);
  for (auto const& state : optimizer_.pieces()) {
    if (state.piece.space == Space::host || ParamStore<T>::is_master) continue;
    convert(lane, params_->updated(state.piece), state.master.data(), state.piece.interval.size());
  }
  host_update_.publish_master(lane, *params_);
  params_->publish(lane);
  link_ = before; // no update's traffic
}

template <class T>
void Engine<T>::begin(Lane const& lane, Visits const& visits, MicroBatchPlace place) {
  params_->begin(visits);
  grads_->begin(lane, place);
  if (pending_ && place.first()) host_update_.begin(pending_->scalars);
}

template <class T>
std::span<Vec<T const> const> Engine<T>::params(Lane const& lane, Visit visit) {
  if (host_update_.under_way()) work_beside(lane);
  params_->fetch(lane, visit);
  auto const& uses = uses_[visit.unit];
  read_.clear();
  for (int const block : visit.phase == Phase::forward ? uses.forward : uses.backward) {
    read_.push_back(params_->block(block));
  }
  return read_;
}

/// The host's time: as long as the device is at the visit before the last one, it has the last one still before it.
template <class T>
void Engine<T>::work_beside(Lane const& lane) {
  visited_[turn_].record(lane);
  turn_ = 1 - turn_;
  while (host_update_.left() > 0 && !visited_[turn_].done()) {
    host_update_.advance(*grads_);
    BetweenLaunches::run(); // a tile takes as long as many launches
  }
}

template <class T>
std::span<Vec<float> const> Engine<T>::grads(Lane const& lane, int unit) {
  added_.clear();
  for (int const block : uses_[unit].gradients) added_.push_back(grads_->block(lane, block));
  return added_;
}

/// Whether the present gradient is of use, and by what it is to be clipped.
template <class T>
UpdateReport Engine<T>::judge(Lane const& lane, OptimizerConfig const& config, double unit) {
  LaneSpan const span(lane, "norm");
  UpdateReport report;
  report.norm = check_.norm(lane, *grads_) / unit;
  report.skipped = !std::isfinite(report.norm);
  if (report.skipped) {
    report.clip = 0;
    report.bad_tensor = check_.first_bad_tensor(lane, *grads_);
  } else if (config.clip) {
    report.clip = std::min(1.0, *config.clip / (report.norm + 1e-6));
  }
  return report;
}

template <class T>
UpdateReport Engine<T>::update(Lane const& lane, OptimizerConfig const& config, double lr, std::int64_t t,
                               double unit) {
  UpdateReport report = judge(lane, config, unit);
  if (host_update_.under_way()) {
    land(lane);
    ++report.applied;
  }
  if (report.skipped) return report;
  double const gradient_scale = report.clip / unit;
  AdamWScalars const scalars(config, lr, t, gradient_scale);
  if (plan_.delays(t)) {
    grads_->turn();
    pending_ = {scalars, gradient_scale};
  } else {
    apply(lane, scalars);
    ++report.applied;
  }
  return report;
}

template <class T>
void Engine<T>::apply(Lane const& lane, AdamWScalars const& scalars) {
  params_->settle(lane);
  step_on_device(lane, scalars, Gradients::present);
  host_update_.run(lane, scalars, *grads_, *params_);
  LaneSpan const span(lane, "publish");
  params_->publish(lane);
}

template <class T>
void Engine<T>::step_on_device(Lane const& lane, AdamWScalars const& scalars, Gradients which) {
  LaneSpan const span(lane, "adamw");
  for (std::size_t p = 0; p < optimizer_.pieces().size(); ++p) {
    auto const& state = optimizer_.pieces()[p];
    if (state.piece.space == Space::host) continue;
    int const number = static_cast<int>(p);
    AdamWShard<T> const shard{
        .count = state.piece.interval.size(),
        .decay_count = state.decay_count,
        .master = state.master.data(),
        .m = state.m.data(),
        .v = state.v.data(),
        .gradient = which == Gradients::present ? grads_->reduced(number) : grads_->former(number),
        .gradient_type = grads_->type(),
        .parameter = ParamStore<T>::is_master ? nullptr : params_->updated(state.piece),
    };
    adamw_step(lane, shard, scalars);
  }
}

/// The delayed update that the host has begun: completes it and makes its parameters the device's.
template <class T>
void Engine<T>::land(Lane const& lane) {
  params_->settle(lane);
  step_on_device(lane, pending_->scalars, Gradients::former);
  host_update_.land(lane, *grads_, *params_);
  {
    LaneSpan const span(lane, "publish");
    params_->publish(lane);
  }
  pending_.reset();
}

template <class T>
std::int64_t Engine<T>::drain(Lane const& lane) {
  if (!pending_) return 0;
  grads_->wait(lane);
  if (plan_.delays()) {
    host_update_.begin(pending_->scalars);
    land(lane);
  } else { // a checkpoint had it, and this run does not delay
    apply(lane, pending_->scalars);
    pending_.reset();
  }
  return 1;
}

template <class T>
std::vector<HeldState> Engine<T>::state() const {
  auto held = optimizer_.held();
  if (!pending_) return held;
  for (std::size_t p = 0; p < optimizer_.pieces().size(); ++p) {
    Piece const& piece = optimizer_.pieces()[p].piece;
    held.push_back({piece.block, piece.interval, StateKind::gradient, grads_->type(),
                    grads_->former(static_cast<int>(p)), piece.space == Space::host ? Space::pinned : Space::device});
  }
  return held;
}

template class Engine<float>;
template class Engine<bf16>;
template class Engine<fp16>;

} // namespace kozero
