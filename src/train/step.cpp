#include "train/step.hpp"

#include <algorithm>

namespace kozero {

namespace {

/// Forward and backward of one micro-batch; `scale` is the loss scale over the batch's valid targets, so that sums over
/// micro-batches and ranks are already the mean. Returns the sum of its losses.
template <class T>
double run_micro_batch(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatch const& batch,
                       MicroBatchPlace place, float scale) {
  auto const visits = training_visits(model.units());
  engine.begin(lane, visits, place);
  for (Visit const visit : visits) {
    auto const params = engine.params(lane, visit);
    if (visit.phase == Phase::forward) {
      model.forward(lane, visit.unit, params, batch);
    } else {
      model.backward(lane, visit.unit, params, engine.grads(lane, visit.unit), batch, scale);
      engine.reduce(lane, visit.unit);
    }
  }
  return model.head().loss_of_backward(lane);
}

} // namespace

template <class T>
std::optional<StepReport> train_step(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatches& feed,
                                     StepInput const& input, Communicator& comm, StopAgreed const& stop_agreed) {
  auto const count = static_cast<double>(std::max<std::int64_t>(input.valid, 1));
  auto const scale = static_cast<float>(input.loss_scale / count);
  double loss = 0;
  for (std::int64_t m = 0; m < feed.micro_batches(); ++m) {
    if (m > 0 && stop_agreed && !engine.between_updates() && stop_agreed()) return std::nullopt;
    MicroBatchPlace const place{m, feed.micro_batches()};
    loss += run_micro_batch(lane, model, engine, feed.upload(lane, m), place, scale);
  }
  comm.sum(std::span(&loss, 1));
  return StepReport{loss / count, engine.update(lane, input.optimizer, input.lr, input.t, input.loss_scale)};
}

template <class T>
double evaluate_batch(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatches& feed) {
  double loss = 0;
  for (std::int64_t m = 0; m < feed.micro_batches(); ++m) {
    MicroBatch const batch = feed.upload(lane, m);
    auto const visits = evaluation_visits(model.units());
    engine.begin_evaluation(visits);
    for (Visit const visit : visits) {
      auto const params = engine.params(lane, visit);
      model.forward(lane, visit.unit, params, batch);
      if (visit.unit + 1 == model.units()) loss += model.head().loss(lane, params, batch);
    }
  }
  return loss;
}

template std::optional<StepReport> train_step(Lane const&, Model<float>&, Engine<float>&, MicroBatches&,
                                              StepInput const&, Communicator&, StopAgreed const&);
template std::optional<StepReport> train_step(Lane const&, Model<bf16>&, Engine<bf16>&, MicroBatches&, StepInput const&,
                                              Communicator&, StopAgreed const&);
template std::optional<StepReport> train_step(Lane const&, Model<fp16>&, Engine<fp16>&, MicroBatches&, StepInput const&,
                                              Communicator&, StopAgreed const&);
template double evaluate_batch(Lane const&, Model<float>&, Engine<float>&, MicroBatches&);
template double evaluate_batch(Lane const&, Model<bf16>&, Engine<bf16>&, MicroBatches&);
template double evaluate_batch(Lane const&, Model<fp16>&, Engine<fp16>&, MicroBatches&);

} // namespace kozero
