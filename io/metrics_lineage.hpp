#pragma once
// Which lines of metrics.jsonl belong to a checkpoint that a run goes on from.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// Where a checkpoint stands in the metrics of its run: their first `bytes` bytes are of this XXH3-128, in hexadecimal.
struct MetricsMark {
  std::int64_t bytes = 0;
  std::string hash;
  friend bool operator==(MetricsMark const&, MetricsMark const&) = default;
};

/// From where a run goes on, for its metrics.
struct ResumePoint {
  std::int64_t batches_seen = 0;
  std::int64_t updates_applied = 0;     // one less where the batch's update is delayed, and pending
  std::optional<MetricsMark> mark = {}; // older checkpoints have none
  /// Whether the file that is there is still needed, by checkpoints that lie further on.
  enum class Former { replaced, kept } former = Former::replaced;
};

/// Of a checkpoint, in the folder of a run.
ResumePoint resume_point(std::filesystem::path const& checkpoint, std::filesystem::path const& run_dir);

/// What is kept of metrics, whole lines.
struct KeptMetrics {
  std::string text;
  bool evaluated = false; // the last line is an evaluation of the state from which the run goes on
  /// What the file holds belongs to others: it is to be kept beside the new one.
  bool from_another_lineage = false;
};

/// The lines that belong to the point, from `path` (metrics.jsonl) or from a former file that was kept beside it: those
/// up to its mark, and an evaluation that followed; none where no file has the mark. Of a point without a mark, all
/// lines of `path` up to its batch, without ends of runs and torn lines. Empty where there is no file. Errors as
/// open_plain_file.
KeptMetrics metrics_of(std::string const& path, ResumePoint const& point);

/// Former files beside metrics.jsonl, metrics.1.jsonl and on, in this order.
std::vector<std::string> kept_metrics_files(std::string const& path);
/// Gives metrics.jsonl the name of the next of these. Error where it cannot be.
void keep_metrics_file(std::string const& path);

} // namespace kozero
