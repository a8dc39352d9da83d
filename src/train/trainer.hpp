#pragma once
#include "comm/group.hpp"
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "io/corpus.hpp"
#include "io/event_file.hpp"
#include "io/metrics.hpp"
#include "io/run_folder.hpp"
#include "train/progress.hpp"
#include "train/saver.hpp"
#include "train/stop.hpp"
#include "train/training.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace kozero {

/// All that a run is made of, beside its ranks.
struct RunInput {
  Config config;
  std::string resolved_deck; // YAML, kept in every checkpoint
  Corpus corpus;
  BatchShape batch;
  std::filesystem::path folder;                                      // of the run, absolute
  std::shared_ptr<RunFolder> held_folder = {};                       // rank 0's; without one the run holds it itself
  std::optional<std::filesystem::path> resume;                       // a checkpoint to go on from
  bool overwrite = false;                                            // the folder's old checkpoints go
  std::optional<std::chrono::system_clock::time_point> job_end = {}; // when the scheduler ends the job
};

enum class RunEnd { done, stopped_early };

/// How a run ended.
struct RunOutcome {
  RunEnd end = RunEnd::done;
  std::string summary; // a line for people
  MostMoved moved;     // by one update, on this rank
};

/// Trains, evaluates, logs and saves until the run's last update, a signal or its time limit. What a batch does is
/// Training's; when something is due is decided here.
///
///     Trainer trainer(input, group, ledger);            // memory; may fail on one rank alone
///     RunOutcome const outcome = trainer.run();        // collective
class Trainer {
public:
  Trainer(RunInput const& input, Group const& group, Ledger& ledger);
  RunOutcome run();

private:
  void start();
  RunOutcome go_on();
  [[noreturn]] void end_without_data(DataError const& error);
  MetricsFile open_metrics() const;
  void open_events();
  void look_after_folder();
  void find_folder();
  bool save_due() const;
  bool one_batch();
  void record(BatchReport const& batch, double seconds);
  void look_at_loss_scale(BatchReport const& batch);
  char const* way_back() const;
  void look_at_skips(BatchReport const& batch);
  StopAsked stop_asked() const;
  void run_evaluation(StopAsked const& asked);
  CheckpointInfo describe_state();
  void drain();
  RunOutcome finish(RunEnd end);
  void log_update(BatchReport const& batch);
  bool due(std::int64_t every) const;
  bool any_rank(bool here) const;
  std::string stop_reason_of_ranks() const;
  double seconds_left() const;

  StopRequest stop_; // first: signals and the time limit count from the start
  RunInput input_;
  Group group_;
  Ledger const& ledger_;
  std::unique_ptr<Training> training_;
  std::optional<MetricsFile> metrics_; // rank 0's
  std::optional<EventFile> events_;    // rank 0's, where the deck asks for it
  MostMoved moved_;
  Progress progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t batches_here_ = 0; // since this process started
  std::int64_t looked_at_ = 0;    // updates_applied when it was last asked what is due
  std::int64_t skips_in_row_ = 0;
  bool evaluation_due_ = false;    // one that checkpoints owe until it is made
  std::int64_t evaluated_at_ = -1; // batches_seen of the last evaluation
  std::chrono::steady_clock::time_point folder_seen_ = start_;
  std::optional<double> loss_, val_loss_;
  std::int64_t logged_batches_ = 0; // batches_here_ at the last line of the log
  double logged_seconds_ = 0;       // of batches until then
  double batch_seconds_ = 0;        // of all batches here
  bool loss_of_log_noted_ = false;
  Saver saver_; // last: it writes from memory of training_
};

/// Builds a trainer on all ranks and runs it. Collective.
RunOutcome train(RunInput const& input, Group const& group, Ledger& ledger);

} // namespace kozero
