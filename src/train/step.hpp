#pragma once
#include "comm/ranks.hpp"
#include "config/config.hpp"
#include "data/batch_feed.hpp"
#include "model/model.hpp"
#include "train/batch_loss.hpp"
#include "zero/engine.hpp"

#include <functional>
#include <optional>

namespace kozero {

/// By what a batch's loss is multiplied in its backward passes, and of what its gradients are multiples then.
struct LossFactors {
  float of_row = 1;       // the gradient of each row's loss, in a backward pass
  double of_gradient = 1; // the batch's gradients are this times those of its mean loss
};

/// With `valid` targets in the batch and `rows` (micro · T) in one rank's micro-batch.
///
/// Without a loss scale a row counts 1/valid, so that sums over micro-batches and ranks are the mean's gradient. With
/// one it counts scale/rows, a constant: what 16-bit gradients of logits and activations can hold must not depend on
/// how many ranks and micro-batches share a batch. The rest of the division comes when the gradient is used.
LossFactors loss_factors(std::int64_t valid, std::int64_t rows, std::optional<double> loss_scale);

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
  std::int64_t t = 1;               // as in Engine::update
  std::optional<double> loss_scale; // fp16 alone
};

/// Asked before each further micro-batch: true, on all ranks, ends the batch there, without an update.
using StopAgreed = std::function<bool()>;

/// One batch: forward and backward of every micro-batch of `feed`, then one optimizer step. Collective.
template <class T>
std::optional<StepReport> train_step(Lane const& lane, Model<T>& model, Engine<T>& engine, BatchFeed& feed,
                                     BatchLoss& loss, StepInput const& input, Ranks& ranks,
                                     StopAgreed const& stop_agreed = {});

/// Σ losses of one batch, over all ranks; no gradients. Collective.
template <class T>
double evaluate_batch(Lane const& lane, Model<T>& model, Engine<T>& engine, BatchFeed& feed, BatchLoss& loss,
                      Ranks& ranks);

} // namespace kozero
