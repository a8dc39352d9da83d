#pragma once
#include "kernels/gemm_workspace.hpp"
#include "optim/loss_scale.hpp"
#include "train/batch_loss.hpp"
#include "train/training.hpp"
#include "zero/state_hash.hpp"
#include "zero/state_snapshot.hpp"

namespace kozero {

/// A Training with compute type T: float, bf16 or fp16.
template <class T>
class TrainingOf final : public Training {
public:
  TrainingOf(TrainingSetup const& setup, Group const& group, Ledger& ledger);
  /// Where an exception unwinds, other ranks may not come to what is under way, and freeing device memory would wait
  /// for it.
  ~TrainingOf() override;

  void initialise() override;
  CheckpointInfo restore(std::filesystem::path const& checkpoint) override;
  bool done() const override { return next_update() > setup_.config.run.updates; }
  std::optional<BatchReport> step(StopAsked const& asked = {}, std::span<std::int64_t> joined = {}) override;
  std::int64_t drain() override;
  void settle() override { engine_.settle(lane_); }
  std::optional<double> evaluate(StopAsked const& asked = {}) override;
  double loss_of(std::int64_t batch) override;
  Counters const& counters() const override { return counters_; }
  bool has_pending() const override { return engine_.pending().has_value(); }
  std::vector<StateEntry> state() const override;
  std::vector<StateEntry> take_snapshot() override;
  void prepare_snapshot_hash(std::function<void()> const& gets_on) override;
  std::string snapshot_hash() override;
  std::string state_hash() const override { return engine_.state_hash(lane_); }
  CheckpointInfo checkpoint_info() const override;
  MovedSoFar moved() const override { return {group_.ranks.traffic(), engine_.link()}; }
  using Training::planned_traffic;
  UpdateTraffic planned_traffic(std::optional<ExchangeWay> const& way) const override;

  /// The number, from 1, of the update that the next batch's gradient is for. A pending update comes before it.
  std::int64_t next_update() const;
  /// What the next batch's gradients are scaled by, in fp16.
  std::optional<double> loss_scale() const;

  // For tests, which look inside and set up what a run only comes to.
  Model<T>& model() { return model_; }
  Engine<T>& engine() { return engine_; }
  BatchFeed& feed() { return feed_; }
  void set_counters(Counters const& counters) { counters_ = counters; }
  void set_loss_scale(double scale) { loss_scale_->restore({.scale = scale}); }

private:
  std::vector<HeldState> state_to_write() const;
  std::int64_t pending_gradient_bytes() const;
  double rate_of(std::int64_t update) const;
  template <class Load>
  std::optional<std::int64_t> load_agreed(StopAsked const& asked, Load const& load,
                                          std::span<std::int64_t> joined = {}) const;
  bool stop_agreed(StopAsked const& asked) const;
  BatchReport account_for(StepReport const& step, StepInput const& input);

  TrainingSetup setup_;
  Group group_;
  LazyLane lane_;
  Plan plan_;
  GemmWorkspace workspace_;
  Model<T> model_;
  Engine<T> engine_;
  BatchFeed feed_;
  BatchLoss batch_loss_;
  std::optional<LossScale> loss_scale_; // fp16 alone

  /// Where checkpoints are saved beside training.
  struct Snapshot {
    StateSnapshot state;
    std::optional<StateHash> hash; // of state; none where each rank has a part of what all hold
    StateHash::Digests digests;
    std::string hex; // of the whole state, then
  };
  std::optional<Snapshot> snapshot_;
  Counters counters_;
};

} // namespace kozero
