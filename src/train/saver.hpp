#pragma once
#include "comm/group.hpp"
#include "config/config.hpp"
#include "train/background_save.hpp"
#include "train/progress.hpp"
#include "train/stop.hpp"
#include "train/training.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace kozero {

/// The run whose state is saved. What it refers to must outlive the saver.
struct SavedRun {
  CheckpointConfig const& options;
  Group const& group;
  Training& training;
  std::function<std::filesystem::path()> find_folder; // where the run's folder is now; collective
  std::function<CheckpointInfo()> describe_state;     // what checkpoint.h5 says of the state, but for its hash
  StopRequest& stop;                                  // is told how long saving takes
  Progress& progress;
};

/// Saves a run's checkpoints, at once or beside its training, and knows what a save that fails does to the run. All
/// calls but those that only look are collective, and throw SharedError where a failure ends the run.
///
///     joined = saver.joined();
///     training.step(asked, joined);       // ranks tell each other how the save under way is getting on
///     saver.after_batch();
///     if (…) saver.save();
///     …
///     saver.save_last();
class Saver {
public:
  explicit Saver(SavedRun const& run) : run_(run) {}

  /// The run goes on from a checkpoint, whose state has this hash, and which may be the newest of its folder.
  enum class Newest { yes, no };
  void note_resumed(std::string const& hash, Newest newest);
  /// Whatever was saved is of a state before.
  void note_change() { saved_at_ = never; }

  /// This rank's numbers for the next batch, to be summed over ranks in place.
  std::span<std::int64_t> joined();
  /// Commits a save that all ranks have written, as the sums say.
  void after_batch();
  /// As rank 0's clock had it at the last batch: `every` seconds have passed since a save began.
  bool time_is_up() const { return sums_[time_up] > 0; }

  /// One that is due, unless the folder has this state.
  void save();
  /// The state that the run ends with: where it cannot be saved, all ranks throw.
  void save_last();
  /// Waits for a save that is under way, where something else ends the run: if it fails, that is told and no more.
  void settle() { finish(Failed::is_told); }
  bool is_under_way() const { return in_background_.has_value(); }

  /// Of the newest state that was saved, or resumed; empty without one.
  std::string const& hash() const { return hash_; }

private:
  enum class Failed { ends_run, by_deck, is_told };
  std::filesystem::path begin();
  bool is_saved(std::filesystem::path const& folder) const;
  void save_now(Failed failed);
  void save_in_background(std::filesystem::path const& folder);
  void finish(Failed failed);
  struct Seconds {
    double waited = 0; // training
    double all = 0;    // that saving at once would have taken, or little more
  };
  void note_saved(std::int64_t batches_seen, std::string const& hash, std::filesystem::path const& path,
                  Seconds seconds);
  void meet_failure(Failed failed, SharedError const& failure);
  Retention retention() const { return {run_.options.keep, run_.options.keep_best}; }

  static constexpr std::int64_t never = -1;
  static constexpr std::size_t time_up = 0, wrote = 1; // in sums_

  SavedRun run_;
  std::int64_t saved_at_ = never; // batches_seen of the newest checkpoint in the run's folder
  std::string hash_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::array<std::int64_t, 2> sums_ = {};

  /// A save that is under way.
  struct BeingSaved {
    std::int64_t batches_seen = 0; // of its state
    double seconds_to_begin = 0;   // that training waited
  };
  BeingSaved being_saved_;
  std::optional<BackgroundSave> in_background_; // of being_saved_; writes from memory of the training
};

} // namespace kozero
