#pragma once
// What is known of the losses of checkpoints. Private to io.

#include "io/checkpoint.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kozero::checkpoint {

/// Losses of a run's checkpoints: what checkpoint.h5 says, else what the metrics say that it was saved with, which are
/// those of its own lineage. These are read when they are first needed; none where they cannot be read.
class CheckpointLosses {
public:
  explicit CheckpointLosses(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {}

  /// Of the last batch before it.
  std::optional<double> training(CheckpointInfo const& info);
  /// Of its state, evaluated before or after it was saved.
  std::optional<double> held_out(CheckpointInfo const& info);

private:
  std::optional<std::string_view> metrics_of(CheckpointInfo const& info);

  std::filesystem::path run_dir_;
  std::optional<std::vector<std::string>> texts_; // of metrics files
};

} // namespace kozero::checkpoint
