#pragma once
#include "model/architecture.hpp"

#include <memory>
#include <vector>

namespace kozero {

/// A model of the deck's family: ordered units and their activations. It sees parameters and gradients as flat blocks
/// and knows nothing of who shards them. T is the compute type, float, bf16 or fp16.
///
///     Model<bf16> model(config, 8, Recompute::none, Purpose::train, ledger);
///     for (int u = 0; u < model.units(); ++u) model.forward(lane, u, params, batch);
template <class T>
class Model {
public:
  /// `batch`: windows in a micro-batch.
  Model(ModelConfig const& config, std::int64_t batch, Recompute recompute, Purpose purpose, Ledger& ledger);

  int units() const { return static_cast<int>(list_.units.size()); }
  void forward(Lane const& lane, int unit, Params<T> params, MicroBatch const& batch) {
    list_.units[unit]->forward(lane, params, batch);
  }
  void backward(Lane const& lane, int unit, Params<T> params, Grads grads, MicroBatch const& batch, float scale) {
    list_.units[unit]->backward(lane, params, grads, batch, scale);
  }
  Head<T>& head() { return *list_.head; }
  ModelLayout const& layout() const { return layout_; }
  std::vector<UnitUses> const& uses() const { return uses_; }

private:
  Model(Architecture const& architecture, BuildOptions const& options, Ledger& ledger);

  ModelLayout layout_;
  std::vector<UnitUses> uses_;
  UnitList<T> list_;
};

} // namespace kozero
