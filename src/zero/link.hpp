#pragma once
// Copies over the link between device and host memory, in the order of a lane, and what they add up to.

#include "core/launch.hpp"
#include "core/profile.hpp"

#include <cstdint>

namespace kozero {

/// Bytes that an engine's updates have sent over the link.
struct LinkTraffic {
  std::int64_t down_bytes = 0; // device to host
  std::int64_t up_bytes = 0;   // host to device
};

/// device[0 … n-1] to pinned memory.
template <class T>
void copy_down(Lane const& lane, T* pinned, T const* device, std::int64_t n, LinkTraffic& traffic) {
  LaneSpan const span(lane, "down");
  copy(lane, on_pinned(pinned), on_device(device), n);
  traffic.down_bytes += n * static_cast<std::int64_t>(sizeof(T));
}

/// pinned[0 … n-1] to device memory.
template <class T>
void copy_up(Lane const& lane, T* device, T const* pinned, std::int64_t n, LinkTraffic& traffic) {
  LaneSpan const span(lane, "up");
  copy(lane, on_device(device), on_pinned(pinned), n);
  traffic.up_bytes += n * static_cast<std::int64_t>(sizeof(T));
}

} // namespace kozero
