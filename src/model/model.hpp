#pragma once
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "layout/unit_schedule.hpp"
#include "model/gpt2/units.hpp"
#include "model/unit.hpp"

#include <memory>
#include <vector>

namespace kozero {

/// The tensors of a model in unit order, and which blocks its units read.
ModelLayout model_layout(ModelConfig const& config);
std::vector<UnitUses> model_uses(ModelConfig const& config);

/// What a model is built for: training keeps activations for the backward pass.
enum class Purpose { train, infer };

/// A GPT: ordered units and their activations. It sees parameters and gradients as flat blocks and knows nothing of who
/// shards them. T is the compute type, float, bf16 or fp16.
///
///     Model<bf16> model(config, 8, Recompute::none, Purpose::train, ledger);
///     for (int u = 0; u < model.units(); ++u) model.forward(lane, u, params, batch);
template <class T>
class Model {
public:
  /// `batch`: windows in a micro-batch.
  Model(ModelConfig const& config, std::int64_t batch, Recompute recompute, Purpose purpose, Ledger& ledger);

  int units() const { return static_cast<int>(units_.size()); }
  void forward(Lane const& lane, int unit, Params<T> params, MicroBatch const& batch) {
    units_[unit]->forward(lane, params, batch);
  }
  void backward(Lane const& lane, int unit, Params<T> params, Grads grads, MicroBatch const& batch, float scale) {
    units_[unit]->backward(lane, params, grads, batch, scale);
  }
  Gpt2Head<T>& head() { return *head_; }
  ModelShape const& shape() const { return shape_; }
  ModelLayout const& layout() const { return layout_; }
  std::vector<UnitUses> const& uses() const { return uses_; }

private:
  ModelShape shape_;
  ModelLayout layout_;
  std::vector<UnitUses> uses_;
  std::vector<DeviceBuffer<T>> stream_; // the residual stream between units, [N,C] each
  DeviceBuffer<T> gradient_;            // of the stream, [N,C]
  std::vector<std::unique_ptr<Unit<T>>> units_;
  Gpt2Head<T>* head_ = nullptr; // the last of units_
};

} // namespace kozero
