#pragma once
#include "comm/group.hpp"
#include "config/config.hpp"
#include "core/error.hpp"
#include "core/ledger.hpp"
#include "data/token_source.hpp"
#include "io/checkpoint.hpp"
#include "optim/loss_scale.hpp"
#include "train/most_moved.hpp"
#include "train/step.hpp"
#include "zero/traffic_plan.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// What a training is made of, beside its ranks and its memory.
struct TrainingSetup {
  Config config;
  BatchShape batch;
  std::shared_ptr<TokenSource> tokens; // none for a plan, which takes no step
  /// The learning rate of an update, from 1; the deck's schedule where it is empty.
  std::function<double(std::int64_t update)> rate = {};
};

/// What one batch did.
struct BatchReport {
  double loss = 0; // mean over all valid targets of the batch, on all ranks
  UpdateReport update;
  double lr = 0;

  struct Scaling {
    double used = 1; // on this batch's gradients
    double next = 1; // on the next one's
    LossScale::Verdict verdict = LossScale::Verdict::kept;
  };
  std::optional<Scaling> scaling = {}; // fp16 alone
};

/// Tokens cannot be read any more, on some rank: no batch can be made. All ranks throw it, between two batches, so that
/// the state is whole and can be saved.
class DataError : public SharedError {
public:
  using SharedError::SharedError;
};

/// Whether this rank has been asked to stop. The ranks agree on it.
using StopAsked = std::function<bool()>;

/// The one assembly of a training: lane, model, engine, tokens, loss scale and counters. Whoever trains, plans or
/// verifies uses it, and adds policy: when to save, log, evaluate and stop.
///
///     auto const training = make_training(setup, group, ledger);   // takes memory; may fail on one rank alone
///     training->initialise();                                     // or restore(checkpoint)
///     while (!training->done()) training->step();
///     training->drain();
///
/// The compute type, a template parameter of all that is below, ends here. All calls but the constructor and those that
/// only look are collective.
class Training {
public:
  virtual ~Training() = default;
  Training() = default;
  Training(Training const&) = delete;
  Training& operator=(Training const&) = delete;

  /// Parameters from run.seed, moments zero.
  virtual void initialise() = 0;
  /// State, counters and loss scale of a checkpoint. Returns what it says, with the hash that its state has today.
  /// SharedError where it cannot be read or is not what it says.
  virtual CheckpointInfo restore(std::filesystem::path const& checkpoint) = 0;

  /// Whether the run's last update has been applied or is pending.
  virtual bool done() const = 0;
  /// The next batch, or nothing where the ranks agree to stop; a batch that was begun then counts for nothing. The
  /// numbers `joined`, at most `most_joined`, become their sums over the ranks, by a message that a batch needs anyway.
  /// DataError where its tokens cannot be read; so does evaluate.
  virtual std::optional<BatchReport> step(StopAsked const& asked = {}, std::span<std::int64_t> joined = {}) = 0;
  static constexpr std::size_t most_joined = 4;
  /// Applies what is pending, where the run has an update left for it; else that stays for a longer run. Returns how
  /// many updates that were.
  virtual std::int64_t drain() = 0;

  /// Ends what is under way between ranks. An error that all ranks throw leaves MPI in good order, so this comes first.
  virtual void settle() = 0;

  /// Mean loss of the held-out windows that the deck asks for, or nothing where the ranks agree to stop on the way.
  virtual std::optional<double> evaluate(StopAsked const& asked = {}) = 0;
  /// Mean loss of a training batch with the parameters that the model has: those that the last update has published.
  virtual double loss_of(std::int64_t batch) = 0;

  virtual Counters const& counters() const = 0;
  /// An update waits for the next batch.
  virtual bool has_pending() const = 0;
  /// This rank's pieces of the state: what a checkpoint holds.
  virtual std::vector<StateEntry> state() const = 0;

  // Where checkpoints are saved beside training (checkpoint.async): what is to be written beside further steps.

  /// A copy in host memory of what this rank has to write of a checkpoint, which stays as it is until the next one is
  /// taken. SharedError where ranks hold copies of the state and these differ, or memory is too small on one.
  virtual std::vector<StateEntry> take_snapshot() = 0;
  /// Most of the work for its hash, of this rank alone, by any thread. `gets_on` is called now and then.
  virtual void prepare_snapshot_hash(std::function<void()> const& gets_on) = 0;
  /// Of the state that the snapshot was taken of, once all ranks have prepared it.
  virtual std::string snapshot_hash() = 0;

  /// The same on every rank, for every stage, offload and N.
  virtual std::string state_hash() const = 0;
  /// What a checkpoint says of the training beside its tensors; deck, version and kind of tokens are others' to add.
  virtual CheckpointInfo checkpoint_info() const = 0;
  /// All that was moved so far.
  virtual MovedSoFar moved() const = 0;
  /// What an update moves, known beforehand. Without a way all ranks are on one host.
  virtual UpdateTraffic planned_traffic(std::optional<ExchangeWay> const& way) const = 0;
  UpdateTraffic planned_traffic() const { return planned_traffic(std::nullopt); }
};

/// In the deck's compute type. Not collective; LimitError where memory is too small. What it is given must outlive it.
std::unique_ptr<Training> make_training(TrainingSetup const& setup, Group const& group, Ledger& ledger);

} // namespace kozero
