#include "train/step.hpp"

#include "core/profile.hpp"

#include <algorithm>

namespace kozero {

LossFactors loss_factors(std::int64_t valid, std::int64_t rows, std::optional<double> loss_scale) {
  auto const count = static_cast<double>(std::max<std::int64_t>(valid, 1));
  if (!loss_scale) return {static_cast<float>(1.0 / count), 1.0};
  double const of_row = *loss_scale / static_cast<double>(rows);
  return {static_cast<float>(of_row), of_row * count};
}

namespace {

/// Forward and backward of one micro-batch.
template <class T>
void run_micro_batch(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatch const& batch,
                     MicroBatchPlace place, float scale) {
  auto const visits = training_visits(model.units());
  engine.begin(lane, visits, place);
  for (int i = 0; i < visits.size(); ++i) {
    Visit const visit = visits[i];
    auto const params = engine.params(lane, visit);
    char const* const unit = engine.layout()[static_cast<std::size_t>(visit.unit)].name().c_str();
    if (visit.phase == Phase::forward) {
      LaneSpan const span(lane, "forward", unit);
      model.forward(lane, visit.unit, params, batch);
    } else {
      {
        LaneSpan const span(lane, "backward", unit);
        model.backward(lane, visit.unit, params, engine.grads(lane, visit.unit), batch, scale);
      }
      LaneSpan const span(lane, "reduce", unit);
      engine.reduce(lane, visit.unit);
    }
  }
}

} // namespace

template <class T>
std::optional<StepReport> train_step(Lane const& lane, Model<T>& model, Engine<T>& engine, BatchFeed& feed,
                                     BatchLoss& loss, StepInput const& input, Ranks& ranks,
                                     StopAgreed const& stop_agreed) {
  LossFactors const factors = loss_factors(input.valid, feed.rows_a_micro_batch(), input.loss_scale);
  std::int64_t const micro_batches = feed.shape().accumulate;
  loss.begin();
  for (std::int64_t m = 0; m < micro_batches; ++m) {
    if (m > 0 && stop_agreed && !engine.between_updates() && stop_agreed()) return std::nullopt;
    run_micro_batch(lane, model, engine, feed.upload(lane, m), {m, micro_batches}, factors.of_row);
    loss.add(lane, m, feed.first_window(m), model.head().losses());
  }
  loss.collect(lane);
  UpdateReport const update = engine.update(lane, input.optimizer, input.lr, input.t, factors.of_gradient);
  return StepReport{loss.total(ranks) / static_cast<double>(std::max<std::int64_t>(input.valid, 1)), update};
}

template <class T>
double evaluate_batch(Lane const& lane, Model<T>& model, Engine<T>& engine, BatchFeed& feed, BatchLoss& loss,
                      Ranks& ranks) {
  loss.begin();
  for (std::int64_t m = 0; m < feed.shape().accumulate; ++m) {
    MicroBatch const batch = feed.upload(lane, m);
    auto const visits = evaluation_visits(model.units());
    engine.begin_evaluation(visits);
    for (int i = 0; i < visits.size(); ++i) {
      Visit const visit = visits[i];
      auto const params = engine.params(lane, visit);
      LaneSpan const span(lane, "evaluate", engine.layout()[static_cast<std::size_t>(visit.unit)].name().c_str());
      model.forward(lane, visit.unit, params, batch);
      if (visit.unit + 1 == model.units()) model.head().loss(lane, params, batch);
    }
    loss.add(lane, m, feed.first_window(m), model.head().losses());
  }
  loss.collect(lane);
  return loss.total(ranks);
}

#define KOZERO_INSTANTIATE(T)                                                                                          \
  template std::optional<StepReport> train_step(Lane const&, Model<T>&, Engine<T>&, BatchFeed&, BatchLoss&,            \
                                                StepInput const&, Ranks&, StopAgreed const&);                          \
  template double evaluate_batch(Lane const&, Model<T>&, Engine<T>&, BatchFeed&, BatchLoss&, Ranks&);

KOZERO_INSTANTIATE(float)
KOZERO_INSTANTIATE(bf16)
KOZERO_INSTANTIATE(fp16)

} // namespace kozero
