#pragma once
#include "comm/group.hpp"
#include "config/config.hpp"
#include "layout/block_layout.hpp"
#include "layout/unit_schedule.hpp"
#include "zero/grad_store.hpp"
#include "zero/gradient_check.hpp"
#include "zero/held_state.hpp"
#include "zero/host_update.hpp"
#include "zero/optimizer_state.hpp"
#include "zero/param_store.hpp"
#include "zero/plan.hpp"
#include "zero/state_hash.hpp"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// What update() made of a batch's gradient.
struct UpdateReport {
  double norm = 0;          // of the whole gradient, before clipping, of the loss itself
  double clip = 1;          // the coefficient that the gradient is multiplied by
  bool skipped = false;     // it is not finite, and of no further use
  std::string bad_tensor;   // then: the first with an Inf or NaN
  std::int64_t applied = 0; // updates that the state has had in the call: this one, or a delayed one before it, or both
};

/// An update that will be applied while the next batch is computed.
struct PendingUpdate {
  AdamWScalars scalars;
  double gradient_scale = 1; // clip coefficient over the unit of the gradient
};

/// ZeRO data parallelism and offload: owns all model state of this rank and moves it as the plan says.
///
///     engine.begin(lane, visits, {m, micro_batches});  // for each micro-batch
///     for u = 0 … n-1:  model.forward(u, engine.params(u));
///     for u = n-1 … 0:  model.backward(u, engine.params(u), engine.grads(u));  engine.reduce(u);
///     engine.update(lane, config, lr, t);              // after the last
///
/// With delayed updates (Ren et al., 2021, section 5.2) batch i is computed with the parameters of update i-2 while the
/// host applies update i-1, from the update on that the plan says. Between batches the device has the parameters of the
/// last update that was applied, and one gradient may be pending.
///
/// All calls are collective. T is the compute type.
template <class T>
class Engine {
public:
  Engine(Plan const& plan, ModelLayout layout, std::vector<UnitUses> uses, Group const& group, Ledger& ledger);
  Engine(Engine const&) = delete; // members refer to each other
  Engine& operator=(Engine const&) = delete;

  /// Parameters from (seed, tensor, element), moments zero.
  void initialise(Lane const& lane, std::int64_t seed);

  /// A micro-batch that will visit the units in that order.
  void begin(Lane const& lane, Visits const& visits, MicroBatchPlace place);
  /// A pass that makes no gradients.
  void begin_evaluation(Visits const& visits) { params_->begin(visits); }

  /// The blocks that the next visit reads, in the order of its UnitUses; the list stays until the next call.
  std::span<Vec<T const> const> params(Lane const& lane, Visit visit);
  /// Where the backward pass of `unit` adds its gradients, in the order of UnitUses::gradients; as with params().
  std::span<Vec<float> const> grads(Lane const& lane, int unit);
  /// The backward pass of `unit` is done: its own block's gradient is complete for this micro-batch.
  void reduce(Lane const& lane, int unit) { grads_->reduce(lane, unit); }

  /// Norm, clip, AdamW, new parameters. `t` is the number of this update among those applied, from 1; the gradients are
  /// `unit` times those of the loss. A norm that is not finite skips the update on all ranks and leaves all state
  /// as it is. Where this update is delayed, its gradient is pending afterwards and the one before it is applied.
  UpdateReport update(Lane const& lane, OptimizerConfig const& config, double lr, std::int64_t t, double unit = 1);

  /// The update whose gradient waits for the next batch, if there is one.
  std::optional<PendingUpdate> const& pending() const { return pending_; }
  /// Whether the host has begun on it: then the batch must be finished, state is between two updates.
  bool between_updates() const { return host_update_.under_way(); }
  /// Applies the pending update now. Returns how many that are.
  std::int64_t drain(Lane const& lane);
  /// Nothing is under way between ranks any more: before a process may leave in good order with an error.
  void settle(Lane const& lane) {
    params_->settle(lane);
    grads_->wait(lane);
  }
  /// A checkpoint's gradient will be read into the arrays of state(), to be applied so.
  void expect_pending(PendingUpdate const& update) { pending_ = update; }

  /// This rank's pieces of master, m and v, and of the pending gradient: what a checkpoint holds.
  std::vector<HeldState> state() const;
  /// The master has changed from outside (a checkpoint was read): derives the parameters from it.
  void publish_master(Lane const& lane);
  /// Of master, m and v of all tensors: the same on every rank, for every stage, offload and N (StateHash).
  std::string state_hash(Lane const& lane) const { return hash_.hex(lane); }

  ModelLayout const& layout() const { return layout_; }
  /// What the updates have sent over the link between device and host.
  LinkTraffic const& link() const { return link_; }

private:
  UpdateReport judge(Lane const& lane, OptimizerConfig const& config, double unit);
  enum class Gradients { present, former };
  void step_on_device(Lane const& lane, AdamWScalars const& scalars, Gradients which);
  void work_beside(Lane const& lane);
  void apply(Lane const& lane, AdamWScalars const& scalars);
  void land(Lane const& lane);

  Plan plan_;
  ModelLayout layout_;
  std::vector<UnitUses> uses_;
  Group group_;
  LinkTraffic link_;
  std::unique_ptr<ParamStore<T>> params_;
  std::unique_ptr<GradStore> grads_;
  GradientCheck check_;
  OptimizerState optimizer_;
  HostUpdate<T> host_update_;
  StateHash hash_;
  std::optional<PendingUpdate> pending_;
  std::vector<Vec<T const>> read_; // params() and
  std::vector<Vec<float>> added_;  // grads() of the last call
  std::array<Event, 2> visited_;   // by the device: the two visits that were launched last, in turn
  int turn_ = 0;
};

} // namespace kozero
