#include "plan/rank_plan.hpp"

#include "comm/planned_comm.hpp"
#include "config/compute_type.hpp"
#include "data/batch_buffers.hpp"
#include "model/model.hpp"
#include "zero/engine.hpp"
#include "zero/traffic_plan.hpp"

namespace kozero {

namespace {

template <class T>
UpdateShape update_shape(Plan const& plan, ModelLayout const& layout, BatchShape const& batch) {
  std::int64_t on_host = 0;
  for (auto const& piece : plan.pieces(layout)) on_host += piece.space == Space::host ? piece.interval.size() : 0;
  return {.accumulate = batch.accumulate,
          .parameter_bytes = size_of(dtype_of<T>),
          .gradient_bytes = size_of(plan.gradients_as_computed() ? dtype_of<T> : DType::f32),
          .host_elements = on_host};
}

template <class T>
RankPlan plan_rank_in(Config const& config, BatchShape const& batch, int rank) {
  Plan const plan(sharding_of(config), rank, static_cast<int>(batch.ranks));
  std::vector<UnitUses> const uses = model_uses(config.model);

  // What Trainer and its communicator are made of.
  Ledger ledger(Ledger::Buffers::counted);
  PlannedComm comm(ledger, plan.rank(), plan.ranks());
  Model<T> const model(config.model, batch.micro, config.activations.recompute, Purpose::train, ledger);
  Engine<T> const engine(plan, model.layout(), uses, comm, ledger);
  BatchBuffers const buffers(batch, config.model.context, ledger);

  return {ledger.peak_rows(), plan_traffic(plan, model.layout(), uses, update_shape<T>(plan, model.layout(), batch))};
}

} // namespace

RankPlan plan_rank(Config const& config, BatchShape const& batch, int rank) {
  return with_compute_type(config.precision.compute, [&]<class T>(T) { return plan_rank_in<T>(config, batch, rank); });
}

} // namespace kozero
