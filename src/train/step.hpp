#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/micro_batches.hpp"
#include "model/model.hpp"
#include "zero/engine.hpp"

#include <functional>
#include <optional>

namespace kozero {

/// What one batch did.
struct StepReport {
  double loss = 0; // mean over all valid targets of the batch, on all ranks
  UpdateReport update;
};

/// How a batch's gradient is to be used.
struct StepInput {
  std::int64_t valid = 0; // valid targets of the batch, over all ranks
  OptimizerConfig const& optimizer;
  double lr = 0;
  std::int64_t t = 1; // as in Engine::update
  double loss_scale = 1;
};

/// Asked before each further micro-batch: true, on all ranks, ends the batch there, without an update.
using StopAgreed = std::function<bool()>;

/// One batch: forward and backward of every micro-batch of `feed`, then one optimizer step. Collective.
template <class T>
std::optional<StepReport> train_step(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatches& feed,
                                     StepInput const& input, Communicator& comm, StopAgreed const& stop_agreed = {});

/// Σ losses of this rank's micro-batches of one batch; no gradients. Collective.
template <class T>
double evaluate_batch(Lane const& lane, Model<T>& model, Engine<T>& engine, MicroBatches& feed);

} // namespace kozero
