#include "train/step.hpp"

#include <algorithm>

namespace kozero {

namespace {

/// Forward and backward of one micro-batch; `scale` is one over the batch's valid targets, so that sums over
/// micro-batches and ranks are already the mean. Returns the sum of its losses.
template <class T>
double run_micro_batch(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatch const& batch,
                       MicroBatchPlace place, float scale) {
  engine.begin(lane, training_visits(model.units()), place);
  for (int u = 0; u < model.units(); ++u) {
    auto const params = engine.params(lane, {u, Phase::forward});
    model.forward(lane, u, params, batch);
  }
  for (int u = model.units() - 1; u >= 0; --u) {
    auto const params = engine.params(lane, {u, Phase::backward});
    auto const grads = engine.grads(lane, u);
    model.backward(lane, u, params, grads, batch, scale);
    engine.reduce(lane, u);
  }
  return model.head().loss_of_backward(lane);
}

} // namespace

template <class T>
StepReport train_step(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatches& feed, std::int64_t valid,
                      OptimizerConfig const& optimizer, double lr, std::int64_t t, Communicator& comm) {
  auto const count = static_cast<double>(std::max<std::int64_t>(valid, 1));
  double loss = 0;
  for (std::int64_t m = 0; m < feed.micro_batches(); ++m) {
    MicroBatchPlace const place{m == 0, m + 1 == feed.micro_batches()};
    loss += run_micro_batch(lane, model, engine, feed.upload(lane, m), place, static_cast<float>(1.0 / count));
  }
  comm.sum(std::span(&loss, 1));
  return {loss / count, engine.update(lane, optimizer, lr, t)};
}

template <class T>
double evaluate_batch(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatches& feed) {
  double loss = 0;
  for (std::int64_t m = 0; m < feed.micro_batches(); ++m) {
    MicroBatch const batch = feed.upload(lane, m);
    engine.begin_evaluation(evaluation_visits(model.units()));
    for (int u = 0; u < model.units(); ++u) {
      auto const params = engine.params(lane, {u, Phase::forward});
      model.forward(lane, u, params, batch);
      if (u + 1 == model.units()) loss += model.head().loss(lane, params, batch);
    }
  }
  return loss;
}

template StepReport train_step(Lane const&, Model<float>&, Engine<float>&, MicroBatches&, std::int64_t,
                               OptimizerConfig const&, double, std::int64_t, Communicator&);
template StepReport train_step(Lane const&, Model<bf16>&, Engine<bf16>&, MicroBatches&, std::int64_t,
                               OptimizerConfig const&, double, std::int64_t, Communicator&);
template double evaluate_batch(Lane const&, Model<float>&, Engine<float>&, MicroBatches&);
template double evaluate_batch(Lane const&, Model<bf16>&, Engine<bf16>&, MicroBatches&);

} // namespace kozero
