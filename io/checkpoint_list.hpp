#pragma once
#include "io/checkpoint.hpp"

#include <chrono>

namespace kozero {

/// A complete checkpoint of a run, as far as its small file and the run's metrics tell.
struct ListedCheckpoint {
  std::filesystem::path folder = {};
  std::optional<CheckpointInfo> info = {};          // nothing where checkpoint.h5 cannot be read
  std::string problem = {};                         // why
  std::int64_t bytes = 0;                           // of its files
  std::chrono::system_clock::time_point saved = {}; // as the file says
  std::optional<double> loss = {};                  // of the last batch before it
  std::optional<double> held_out_loss = {};         // of its state, evaluated before or after it was saved
  bool is_newest = false;                           // what --resume takes
};

/// All of a run's folder, in the order of their updates. Reads no tensors.
std::vector<ListedCheckpoint> list_checkpoints(std::filesystem::path const& run_dir);

/// What pruning removes or would remove.
struct Pruned {
  std::vector<std::filesystem::path> checkpoints;
  std::vector<std::filesystem::path> partial; // leftovers of saves that did not end
  std::int64_t bytes = 0;
  std::vector<std::string> problems; // what is to go and stays, and why
};

enum class Prune { now, dry_run };
/// Removes the checkpoints that are not to stay, but never the newest, by the losses that list_checkpoints tells; what
/// cannot be read stays, with a warning. The link `latest` leads to the newest then. The caller holds the run's folder,
/// so that nothing is being saved; not for a dry run.
Pruned prune_checkpoints(std::filesystem::path const& run_dir, Retention const& retention, Prune mode);

} // namespace kozero
