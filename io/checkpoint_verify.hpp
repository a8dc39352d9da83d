#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kozero {

/// What a look at every byte of a checkpoint has found.
struct Verdict {
  std::int64_t files = 0;
  std::int64_t datasets = 0;
  std::int64_t bytes = 0;          // of their elements
  std::vector<std::string> faults; // one line each; empty: it is whole
};

/// Called with bytes read so far and bytes in all.
using BytesRead = std::function<void(std::int64_t, std::int64_t)>;

/// Reads all files of a checkpoint, in one process, whoever wrote them: every dataset is compared with its checksums,
/// and each element of each tensor must stand in one file. Does not stop at a fault.
Verdict verify_checkpoint(std::filesystem::path const& folder, BytesRead const& progress);

} // namespace kozero
