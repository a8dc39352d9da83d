#include "core/device.hpp"

#include "core/error.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <cctype>
#include <cstdlib>

namespace kozero {

namespace {

/// A library's function; null where the library is not there. What is loaded stays so.
template <class Function>
Function* find(std::string const& library, char const* name) {
  void* const handle = dlopen(library.c_str(), RTLD_LAZY);
  return handle ? reinterpret_cast<Function*>(dlsym(handle, name)) : nullptr;
}

/// Of CUDA: 13000 is 13.0.
std::string cuda_version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }
/// Of its libraries: 130102 is 13.1.2.
std::string library_version(std::int64_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::string found(std::string const& version) { return version.empty() ? "not found" : version; }
std::string built_with(std::string const& version) { return version.empty() ? "-" : version; }

std::string driver_here() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess && version > 0 ? cuda_version(version) : "";
}

std::string device_here() {
  int count = 0;
  cudaDeviceProp properties = {};
  bool const is_there =
      cudaGetDeviceCount(&count) == cudaSuccess && count > 0 && cudaGetDeviceProperties(&properties, 0) == cudaSuccess;
  return is_there ? fmt::format("{}, {}.{}", properties.name, properties.major, properties.minor) : "";
}

std::string runtime_here() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess ? cuda_version(version) : "";
}

std::string products_here() {
  auto* const version =
      find<std::size_t()>(fmt::format("libcublasLt.so.{}", CUDART_VERSION / 1000), "cublasLtGetVersion");
  return version ? library_version(static_cast<std::int64_t>(version())) : "";
}

std::string attention_here() {
  auto* const version = find<std::size_t()>("libcudnn.so.9", "cudnnGetVersion");
  return version ? library_version(static_cast<std::int64_t>(version())) : "";
}

std::string nccl_here() {
  auto* const version = find<int(int*)>("libnccl.so.2", "ncclGetVersion");
  int number = 0;
  return version && version(&number) == 0 ? library_version(number) : "";
}

} // namespace

std::optional<DeviceIdentity> device_identity() {
  int device = 0;
  cudaDeviceProp properties = {};
  std::array<char, 32> address = {};
  DeviceIdentity identity;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess) code = cudaGetDeviceProperties(&properties, device);
  if (code == cudaSuccess) code = cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device);
  if (code == cudaSuccess) code = cudaGetDeviceCount(&identity.visible);
  KOZERO_REQUIRE(code == cudaSuccess, "the device cannot be asked what it is ({}); look at it and its driver",
                 cudaGetErrorString(code));
  identity.name = properties.name;
  identity.uuid = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) identity.uuid += '-';
    identity.uuid += fmt::format("{:02x}", static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  for (char const* c = address.data(); *c != 0; ++c) {
    identity.address += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  return identity;
}

std::optional<std::int64_t> free_device_memory() {
  std::size_t free = 0;
  std::size_t all = 0;
  cudaError_t const code = cudaMemGetInfo(&free, &all);
  KOZERO_REQUIRE(code == cudaSuccess, "the device cannot be asked what memory is free ({}); look at it and its driver",
                 cudaGetErrorString(code));
  return static_cast<std::int64_t>(free);
}

void require_device() {
  int devices = 0;
  cudaError_t const code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return;
  std::string const driver = driver_here();
  KOZERO_REQUIRE(!driver.empty(),
                 "there is no CUDA driver here (this program computes on NVIDIA's devices); run it on a node with "
                 "a GPU. What needs none, as check, plan and checkpoint, runs anywhere");
  KOZERO_REQUIRE(
      code != cudaErrorInsufficientDriver,
      "the CUDA driver is too old (it knows CUDA {}, this program was built with {}); use a node with a newer "
      "driver, or build with an older toolkit",
      driver, cuda_version(CUDART_VERSION));
  char const* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  throw Error(
      fmt::format("no CUDA device can be used ({}; CUDA_VISIBLE_DEVICES is {}); run on a node with a GPU, and ask "
                  "the batch system for it",
                  cudaGetErrorString(code), visible ? fmt::format("'{}'", visible) : "not set"));
}

std::vector<DevicePart> device_parts() {
  return {{"device", KOZERO_KOKKOS_ARCHITECTURE, found(device_here())},
          {"CUDA driver", "-", found(driver_here())},
          {"CUDA runtime", cuda_version(CUDART_VERSION), found(runtime_here())},
          {"cuBLASLt", built_with(KOZERO_CUBLASLT_VERSION), found(products_here())},
          {"cuDNN", built_with(KOZERO_CUDNN_VERSION), found(attention_here())},
          {"cuDNN frontend", built_with(KOZERO_CUDNN_FRONTEND_VERSION), "headers alone"},
          {"NCCL", built_with(KOZERO_NCCL_VERSION), found(nccl_here())}};
}

} // namespace kozero
