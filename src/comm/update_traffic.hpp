#pragma once
#include <cstdint>
#include <string>

namespace kozero {

/// What one kind of collective brings a rank in one update.
struct CollectiveTraffic {
  std::string collective; // "all_gather", or "none"
  std::int64_t calls = 0;
  std::int64_t bytes = 0; // received from other ranks
  friend bool operator==(CollectiveTraffic const&, CollectiveTraffic const&) = default;
};

/// What one update moves to a rank, and between its device and its host.
struct UpdateTraffic {
  CollectiveTraffic parameters, gradients;
  std::int64_t to_host_bytes = 0;
  std::int64_t to_device_bytes = 0;
  friend bool operator==(UpdateTraffic const&, UpdateTraffic const&) = default;
};

} // namespace kozero
