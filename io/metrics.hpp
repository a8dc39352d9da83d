#pragma once
#include <cstdint>
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
/// as null, so every line is valid JSON. A line is with the system when the call returns; what cannot be written
/// (disk full) is an Error that names file and cause. Rank 0's.
///
///     MetricsFile metrics = MetricsFile::create(folder.metrics_file());
///     metrics.update({.batch = 1, .updates_applied = 1, .loss = 5.5});
class MetricsFile {
public:
  /// A new run: an older file of this name is emptied.
  static MetricsFile create(std::string path);
  /// A run that goes on after `batches_seen` batches: lines of later batches and the end of the former run go, a torn
  /// last line too, so the file reads as that of one run. It is replaced as a whole; a kill leaves the old or the new.
  static MetricsFile resume(std::string path, std::int64_t batches_seen);

  MetricsFile(MetricsFile&& other) noexcept;
  MetricsFile& operator=(MetricsFile&&) = delete;
  ~MetricsFile();

  void update(UpdateRecord const& record);
  void evaluation(EvaluationRecord const& record);
  void end(EndRecord const& record);
  /// {"event":"note", …}: something about the run that nobody may have seen otherwise.
  void note(std::int64_t batch, std::string const& text);

  /// Of a file that a run goes on with: its last line is the evaluation after `batches_seen` batches.
  bool ends_evaluated() const { return ends_evaluated_; }

private:
  MetricsFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  static MetricsFile open(std::string path, int flags);
  void write(std::string const& text);

  std::string path_;
  int file_ = -1; // descriptor
  bool ends_evaluated_ = false;
};

} // namespace kozero
