#include "core/device_name.hpp"

#include "core/error.hpp"
#include "core/host_simd.hpp"
#include "core/kokkos.hpp"

namespace kozero {

std::string device_name() {
#if KOZERO_EMULATED
  return "emulated device";
#elif defined(KOKKOS_ENABLE_CUDA)
  cudaDeviceProp properties{};
  cudaError_t const code = cudaGetDeviceProperties(&properties, DeviceExec().cuda_device());
  KOZERO_REQUIRE(code == cudaSuccess, "cudaGetDeviceProperties failed ({}); look at the device and its driver",
                 cudaGetErrorString(code));
  return properties.name;
#elif KOZERO_HAS_ACCELERATOR
  return DeviceExec::name();
#else
  return std::string("host, ") + name_of(host_target());
#endif
}

} // namespace kozero
