#pragma once
// Copies over the link between device and host memory, in the order of a lane, and what they add up to.

#include "core/lane.hpp"

#include <cstdint>

namespace kozero {

/// Bytes that an engine's updates have sent over the link.
struct LinkTraffic {
  std::int64_t down_bytes = 0; // device to host
  std::int64_t up_bytes = 0;   // host to device
};

template <class Memory, class T>
using LinkView = Kokkos::View<T*, Kokkos::LayoutRight, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// device[0 … n-1] to pinned memory.
template <class T>
void copy_down(Lane const& lane, T* pinned, T const* device, std::int64_t n, LinkTraffic& traffic) {
  auto const count = static_cast<std::size_t>(n);
  Kokkos::deep_copy(lane.exec(), LinkView<PinnedMemory, T>(pinned, count),
                    LinkView<DeviceMemory, T const>(device, count));
  traffic.down_bytes += n * static_cast<std::int64_t>(sizeof(T));
}

/// pinned[0 … n-1] to device memory.
template <class T>
void copy_up(Lane const& lane, T* device, T const* pinned, std::int64_t n, LinkTraffic& traffic) {
  auto const count = static_cast<std::size_t>(n);
  Kokkos::deep_copy(lane.exec(), LinkView<DeviceMemory, T>(device, count),
                    LinkView<PinnedMemory, T const>(pinned, count));
  traffic.up_bytes += n * static_cast<std::int64_t>(sizeof(T));
}

} // namespace kozero
