#pragma once
// The one header that knows which Kokkos this is and which backends it has. Kokkos 3.4 to 5.x.

#include <Kokkos_Core.hpp>
#if KOKKOS_VERSION < 30700
#include <Kokkos_MathematicalFunctions.hpp>
#endif

#include <cstdint>
#include <string>

namespace kozero {

// 1 where the rules of an accelerator are enforced on a host, for tests (core/emulated).
#ifndef KOZERO_EMULATED
#define KOZERO_EMULATED 0
#endif

/// Where the model computes.
using DeviceExec = Kokkos::DefaultExecutionSpace;
/// Where offloaded state is updated.
using HostExec = Kokkos::DefaultHostExecutionSpace;

// 1 where the device is an accelerator of its own, 0 where Kokkos' default backend runs on the host.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
#define KOZERO_HAS_ACCELERATOR 1
#else
#define KOZERO_HAS_ACCELERATOR 0
#endif

// KOZERO_ON_HOST is 1 in code compiled for the host and 0 in a kernel compiled for an accelerator, or for the emulated
// one.
#if KOZERO_EMULATED || defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__) || defined(__SYCL_DEVICE_ONLY__)
#define KOZERO_ON_HOST 0
#else
#define KOZERO_ON_HOST 1
#endif

namespace math {
#if KOKKOS_VERSION >= 30700
using Kokkos::exp;
using Kokkos::log;
using Kokkos::sqrt;
#else
using Kokkos::Experimental::exp;
using Kokkos::Experimental::log;
using Kokkos::Experimental::sqrt;
#endif
#if KOKKOS_VERSION >= 40000
using Kokkos::fma;
#else
KOKKOS_FORCEINLINE_FUNCTION float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
KOKKOS_FORCEINLINE_FUNCTION double fma(double a, double b, double c) { return ::fma(a, b, c); }
#endif
} // namespace math

/// "3.4.1"
inline std::string kokkos_version() {
  return std::to_string(KOKKOS_VERSION / 10000) + "." + std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
         std::to_string(KOKKOS_VERSION % 100);
}

} // namespace kozero
