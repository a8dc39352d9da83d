#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace kozero {

/// Bytes of memory that this process can still take without swapping: what the system has available, or less where
/// the process' control group (a container, a batch job) allows less. Nothing where the system does not say.
/// `root` stands before /proc and /sys, for tests.
std::optional<std::int64_t> available_host_memory(std::string const& root = "");

} // namespace kozero
