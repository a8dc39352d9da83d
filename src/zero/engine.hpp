#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "layout/block_layout.hpp"
#include "layout/state_entry.hpp"
#include "layout/unit_schedule.hpp"
#include "zero/grad_store.hpp"
#include "zero/optimizer_state.hpp"
#include "zero/param_store.hpp"
#include "zero/plan.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kozero {

/// What update() did.
struct UpdateReport {
  double norm = 0; // of the whole gradient, before clipping
  double clip = 1; // the coefficient that the gradient was multiplied by
  bool applied = true;
  std::string bad_tensor; // the first with an Inf or NaN, where the update was skipped
};

/// ZeRO data parallelism: owns all model state of this rank and moves it as the plan says.
///
///     engine.begin(visits, {first, last});            // for each micro-batch
///     for u = 0 … n-1:  model.forward(u, engine.params(u));
///     for u = n-1 … 0:  model.backward(u, engine.params(u), engine.grads(u));  engine.reduce(u);
///     engine.update(config, lr, t);                    // after the last
///
/// All calls are collective. T is the compute type, float or bf16.
template <class T>
class Engine {
public:
  Engine(Plan const& plan, ModelLayout layout, std::vector<UnitUses> uses, Communicator& comm, Ledger& ledger);

  /// Parameters from (seed, tensor, element), moments zero.
  void initialise(Lane const& lane, std::int64_t seed);

  /// A micro-batch that will visit the units in that order.
  void begin(Lane const& lane, std::vector<Visit> const& visits, MicroBatchPlace place);
  /// A pass that makes no gradients.
  void begin_evaluation(std::vector<Visit> const& visits) { params_->begin(visits); }

  /// The blocks that the next visit reads, in the order of its UnitUses.
  std::vector<Vec<T const>> params(Lane const& lane, Visit visit);
  /// Where the backward pass of `unit` adds its gradients, in the order of UnitUses::gradients.
  std::vector<Vec<float>> grads(Lane const& lane, int unit);
  /// The backward pass of `unit` is done: its own block's gradient is complete for this micro-batch.
  void reduce(Lane const& lane, int unit) { grads_->reduce(lane, unit); }

  /// Norm, clip, AdamW, new parameters. `t` is the number of this update among those applied, from 1. A norm that is
  /// not finite skips the update on all ranks and leaves all state as it is.
  UpdateReport update(Lane const& lane, OptimizerConfig const& config, double lr, std::int64_t t);

  /// This rank's pieces of master, m and v: what a checkpoint holds.
  std::vector<StateEntry> state() const;
  /// The master has changed from outside (a checkpoint was read): derives the parameters from it.
  void publish_master(Lane const& lane);
  /// XXH3-128 over all tensors in model order, of each the master, m and v: the same on every rank, for every stage and
  /// N.
  std::string state_hash(Lane const& lane) const;

  ModelLayout const& layout() const { return layout_; }

private:
  double gradient_norm(Lane const& lane) const;
  std::string first_bad_tensor(Lane const& lane) const;

  Plan plan_;
  ModelLayout layout_;
  std::vector<UnitUses> uses_;
  Communicator& comm_;
  Ledger& ledger_;
  std::unique_ptr<ParamStore<T>> params_;
  std::unique_ptr<GradStore> grads_;
  OptimizerState optimizer_;
};

} // namespace kozero
