#pragma once
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "data/batch_feed.hpp"
#include "io/checkpoint.hpp"
#include "io/corpus.hpp"
#include "io/metrics.hpp"
#include "model/model.hpp"
#include "optim/loss_scale.hpp"
#include "plan/usage_table.hpp"
#include "train/progress.hpp"
#include "train/step.hpp"
#include "train/stop.hpp"
#include "zero/engine.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace kozero {

/// All that a run is made of, beside its ranks.
struct RunInput {
  Config config;
  std::string resolved_deck; // YAML, kept in every checkpoint
  Corpus corpus;
  BatchShape batch;
  std::filesystem::path folder;                // of the run, absolute
  std::optional<std::filesystem::path> resume; // a checkpoint to go on from
  bool overwrite = false;                      // the folder's old checkpoints go
};

enum class RunEnd { done, stopped_early };

/// Trains, evaluates, logs and saves until the run's last update, a signal or its time limit.
/// T is the compute type.
///
///     Trainer<bf16> trainer(input, comm, ledger);   // memory; may fail on one rank alone
///     RunEnd const end = trainer.run();             // collective
template <class T>
class Trainer {
public:
  Trainer(RunInput const& input, Communicator& comm, Ledger& ledger);
  Trainer(Trainer const&) = delete; // config_ refers to input_
  Trainer& operator=(Trainer const&) = delete;
  RunEnd run();

private:
  void start();
  void restore(std::filesystem::path const& checkpoint);
  MetricsFile open_metrics(std::string const& path) const;
  bool one_batch();
  void record(StepReport const& step, StepInput const& input, double seconds);
  void adapt_loss_scale(UpdateReport const& update);
  void give_up_after_skips(std::string const& tensor) const;
  bool stop_agreed(std::int64_t& valid);
  bool stop_agreed();
  void run_evaluation();
  std::optional<double> validation_loss();
  void save();
  void drain();
  RunEnd finish(RunEnd end);
  bool due(std::int64_t every) const;
  std::int64_t next_update() const;
  double rate_of(std::int64_t update) const;

  StopRequest stop_; // first: signals and the time limit count from the start
  RunInput input_;
  Config const& config_;
  Communicator& comm_;
  Ledger& ledger_;
  Lane lane_;
  Model<T> model_;
  Engine<T> engine_;
  BatchFeed feed_;
  std::optional<std::string> stop_reason_; // once the ranks have agreed to stop
  Counters counters_;
  std::optional<LossScale> loss_scale_; // fp16 alone
  std::optional<MetricsFile> metrics_;  // rank 0's
  MostMoved moved_;
  Progress progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t batches_here_ = 0; // since this process started
  std::int64_t looked_at_ = 0;    // updates_applied when it was last asked what is due
  std::int64_t skips_in_row_ = 0;
  std::int64_t evaluated_at_ = -1; // batches_seen of the last evaluation
  std::int64_t saved_at_ = -1;     // and of the newest checkpoint in the run's folder
  std::string hash_;               // of the state at saved_at_
  std::optional<double> loss_, val_loss_;
};

/// Runs the trainer of the deck's compute type.
RunEnd train(RunInput const& input, Communicator& comm, Ledger& ledger);

} // namespace kozero
