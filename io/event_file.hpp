#pragma once
#include "io/file_descriptor.hpp"
#include "io/metrics.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kozero {

/// A run's scalars for TensorBoard: loss, loss/held-out, norm, lr and tokens_per_s over batches. Each start of the
/// program writes a file of its own, which tells TensorBoard from which batch on those before it count no more, so that
/// a resumed run has one curve. Where those before it lack something that metrics.jsonl has, it has that too. What
/// cannot be read or written is said once, and the run goes on: metrics.jsonl has it all. Rank 0's.
///
///     EventFile events(run_folder, metrics_file, 11);   // the run goes on with batch 11
///     events.update(record);
///
/// The format is TensorFlow's: records of tsl/lib/io/record_writer.h that hold an Event of
/// tensorboard/compat/proto/event.proto each.
class EventFile {
public:
  /// Its name comes behind those that are there, as TensorBoard reads them by name. `metrics_file` has the lines of all
  /// batches before `next_batch`.
  EventFile(std::string const& folder, std::string const& metrics_file, std::int64_t next_batch);

  void update(UpdateRecord const& update);
  void evaluation(EvaluationRecord const& evaluation);

private:
  void write(std::string const& records);

  std::string path_;
  FileDescriptor file_;
};

/// Those in a folder that kozero wrote, by name.
std::vector<std::string> event_files(std::string const& folder);

/// CRC-32C (Castagnoli, RFC 3720 B.4), as records have it of their length and their bytes.
std::uint32_t crc32c(std::string_view bytes);

} // namespace kozero
