#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// What a look at every byte of a checkpoint has found.
struct Verdict {
  std::int64_t files = 0;
  std::int64_t datasets = 0;
  std::int64_t bytes = 0;          // of their elements
  std::vector<std::string> faults; // one line each; empty: it is whole
  std::string unchecked;           // what its files, being old, do not tell
};

/// A state array that a checkpoint has to have.
struct ExpectedArray {
  std::string name; // "wte.weight"
  std::string kind; // "m"
};

/// Called with bytes read so far and bytes in all.
using BytesRead = std::function<void(std::int64_t, std::int64_t)>;

/// Reads all files of a checkpoint, in one process, whoever wrote them: every dataset is compared with its checksums,
/// each element of each tensor must stand in one file of this save, all `expected` arrays must be there, and tensors.h5
/// must show what the files hold. Does not stop at a fault.
Verdict verify_checkpoint(std::filesystem::path const& folder, std::span<ExpectedArray const> expected,
                          BytesRead const& progress);

} // namespace kozero
