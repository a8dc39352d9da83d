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
/// a resumed run has one curve. What cannot be written is said once, and the run goes on: metrics.jsonl has it all.
/// Rank 0's.
///
///     EventFile events(run_folder, 11);   // the run goes on with batch 11
///     events.update(record);
///
/// The format is TensorFlow's: records of tsl/lib/io/record_writer.h that hold an Event of
/// tensorboard/compat/proto/event.proto each.
class EventFile {
public:
  /// Its name comes behind those that are there, as TensorBoard reads them by name.
  EventFile(std::string const& folder, std::int64_t first_batch);

  void update(UpdateRecord const& record);
  void evaluation(EvaluationRecord const& record);
  /// All that a metrics.jsonl has, from which the curves are made anew.
  void all_of(std::string const& metrics_file);

private:
  void write(std::string const& event);
  void write_line(std::string const& line);

  std::string path_;
  FileDescriptor file_;
};

/// Those in a folder that kozero wrote, by name.
std::vector<std::string> event_files(std::string const& folder);

/// CRC-32C (Castagnoli, RFC 3720 B.4), as records have it of their length and their bytes.
std::uint32_t crc32c(std::string_view bytes);

} // namespace kozero
