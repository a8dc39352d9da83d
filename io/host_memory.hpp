#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// What bounds the memory of this process, and how many bytes that leaves it without swapping.
struct MemoryBound {
  std::string name; // "the host", "control group /slurm/job_7"
  std::int64_t available = 0;
  /// Of processes of one host with equal ones it is the same bound; containers call theirs by one name.
  std::string identity = {};
};

/// The host, and each control group (a container, a batch job) around this process that has a limit; none where the
/// system does not say. `root` stands before /proc and /sys, for tests.
std::vector<MemoryBound> host_memory_bounds(std::string const& root = "");

/// Bytes of memory that this process can still take without swapping: the least of these bounds. Nothing where the
/// system does not say.
std::optional<std::int64_t> available_host_memory(std::string const& root = "");

} // namespace kozero
