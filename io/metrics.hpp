#pragma once
#include "core/hash.hpp"
#include "io/file_descriptor.hpp"
#include "io/metrics_lineage.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace kozero {

/// One object a batch. Batches are counted from 1: a record of batch b is written when b batches have been seen.
struct UpdateRecord {
  std::int64_t batch = 0;
  std::int64_t updates_applied = 0; // after this batch
  std::int64_t updates_skipped = 0;
  double loss = 0; // nats a token
  double norm = 0; // of the gradient, before clipping
  double clip = 1; // the factor that clipping applied
  double lr = 0;
  double tokens_per_s = 0;
  double seconds = 0;                    // of this batch
  std::optional<double> loss_scale = {}; // of this batch's backward pass; no key when there was none
  bool pending = false;                  // the update is applied while the next batch is computed; no key when not
};

struct EvaluationRecord {
  std::int64_t batch = 0;
  std::int64_t updates_applied = 0;
  double val_loss = 0;
};

/// The last object of a run: {"event":"end", …}.
struct EndRecord {
  std::int64_t updates_applied = 0;
  std::int64_t updates_skipped = 0;
  std::int64_t batches_seen = 0;
  std::optional<double> loss = {}; // of the last batch; no key when there was none
  std::optional<double> val_loss = {};
  std::string state_hash = {};
  double seconds = 0;      // since this start of the program
  std::string reason = {}; // why it ended
};

/// <run>/metrics.jsonl: one JSON object a line, in the order in which things happened. What is not finite is written
/// as null, so every line is valid JSON. A line is with the system when the call returns. What cannot be written (disk
/// full) is no error but told in the log: lines wait, and are written whole and in their order once they can be. Only
/// the beginning throws. Rank 0's.
///
///     MetricsFile metrics = MetricsFile::create(folder.metrics_file());
///     metrics.update({.batch = 1, .updates_applied = 1, .loss = 5.5});
class MetricsFile {
public:
  /// A new run: an older file of this name is replaced.
  static MetricsFile create(std::string path);
  /// A run that goes on: the lines that belong to its checkpoint stay, so the file reads as that of one run; those that
  /// belong to other checkpoints alone are kept beside it (metrics_lineage.hpp). It is replaced as a whole; a kill
  /// leaves the old or the new.
  static MetricsFile resume(std::string path, ResumePoint const& point);

  void update(UpdateRecord const& record);
  void evaluation(EvaluationRecord const& record);
  void end(EndRecord const& record);
  /// {"event":"note", …}: something about the run that nobody may have seen otherwise.
  void note(std::int64_t batch, std::string const& text);

  /// The last line that a resumed run kept is the evaluation of the batch from which it goes on.
  bool ends_evaluated() const { return ends_evaluated_; }
  /// All lines so far, for a checkpoint; they are on disk then, as far as the system can do that.
  MetricsMark mark();

  enum class Found { in_place, written_anew };
  /// The file is to be at `path`, where its folder may have been moved. Where it is not there, its lines so far are
  /// written there anew; where that fails it is told once, and tried again by the next call. Cheap otherwise.
  Found keep_at(std::string const& path);

private:
  MetricsFile(std::string path, std::string const& text);
  void write(std::string line);
  void put_waiting();
  bool put(std::string const& line);
  void tell_of_end_of_failure();
  void write_anew(std::string const& path);
  void count(std::string const& text);

  std::string path_;
  FileDescriptor file_;
  Hash128 hash_; // of all lines, with those that wait
  std::int64_t bytes_ = 0;
  std::int64_t written_ = 0;        // bytes that are in the file
  std::deque<std::string> waiting_; // lines that could not be written yet
  std::int64_t lost_ = 0;           // that waited too long
  bool is_failing_ = false;         // the last write failed
  bool is_without_place_ = false;   // as keep_at() has told
  bool ends_evaluated_ = false;
};

} // namespace kozero
