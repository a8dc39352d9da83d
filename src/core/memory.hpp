#pragma once
// The three memories of the program. They are types of their own on every build, a CPU's included, where one Kokkos
// space may serve two of them: what is meant for one never passes for another.

#include "core/kokkos.hpp"

#include <cstddef>
#include <cstdint>

namespace kozero {

enum class Space { device, pinned, host };

char const* name_of(Space space);

/// Where the model computes. Host code must not touch it, whatever the build: host_reaches_device says what happens.
struct DeviceMemory {
  using space = DeviceExec::memory_space;
  static constexpr Space kind = Space::device;
};

/// Host memory that the device copies from and to at full speed, beside other work.
struct PinnedMemory {
#if defined(KOKKOS_ENABLE_CUDA)
  using space = Kokkos::CudaHostPinnedSpace;
#elif defined(KOKKOS_ENABLE_HIP) && KOKKOS_VERSION >= 40000
  using space = Kokkos::HIPHostPinnedSpace;
#else
  using space = Kokkos::HostSpace;
#endif
  static constexpr Space kind = Space::pinned;
};

/// Where offloaded state lives and is updated. A copy between it and the device makes the host wait.
struct HostMemory {
  using space = Kokkos::HostSpace;
  static constexpr Space kind = Space::host;
};

/// True on CPU builds: device memory is host memory, a kernel has run when its launch returns. The emulated device says
/// false, and enforces it.
inline constexpr bool host_reaches_device =
    !KOZERO_EMULATED && Kokkos::SpaceAccessibility<HostExec, DeviceMemory::space>::accessible;

/// An address that says which memory it is in.
template <class T, class Memory>
struct Pointer {
  T* address = nullptr;
};

template <class T>
Pointer<T, DeviceMemory> on_device(T* address) {
  return {address};
}
template <class T>
Pointer<T, PinnedMemory> on_pinned(T* address) {
  return {address};
}
template <class T>
Pointer<T, HostMemory> on_host(T* address) {
  return {address};
}

/// Some bytes of a memory that is known at run time alone.
struct Site {
  void const* address = nullptr;
  Space space = Space::device;
};

} // namespace kozero
