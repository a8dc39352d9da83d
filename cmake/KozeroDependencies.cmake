# Every library that kozero uses, found and nothing else. Each is linked PRIVATE by the one folder that is its home.
find_package(Threads REQUIRED)
find_package(OpenMP COMPONENTS CXX)
find_package(MPI REQUIRED COMPONENTS C)
find_package(Kokkos REQUIRED)
find_package(KokkosKernels REQUIRED)
if(KOZERO_SERIAL AND NOT Kokkos_DEVICES MATCHES "^(SERIAL|Serial)$")
  message(FATAL_ERROR "Kokkos has the backends ${Kokkos_DEVICES} (preset serial wants Serial alone); point Kokkos_ROOT to "
                      "such a build or take another preset")
endif()
if(KOZERO_EMULATED AND Kokkos_DEVICES MATCHES "CUDA|HIP|SYCL")
  message(FATAL_ERROR "Kokkos has the backends ${Kokkos_DEVICES} (preset emulated has the host do an accelerator's work); "
                      "point Kokkos_ROOT to a build for hosts or take another preset")
endif()
if(Kokkos_DEVICES MATCHES "CUDA" OR KOZERO_CUDA_ARCHITECTURE)
  include(KozeroCuda)
endif()
find_package(dnnl CONFIG QUIET)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(kozero_asio INTERFACE)
target_include_directories(kozero_asio SYSTEM INTERFACE "${ASIO_INCLUDE_DIR}")
target_compile_definitions(kozero_asio INTERFACE ASIO_STANDALONE=1 ASIO_NO_DEPRECATED=1)
if(Kokkos_DEVICES MATCHES "CUDA") # nvcc does not take what Asio makes of variable templates
  target_compile_definitions(kozero_asio INTERFACE ASIO_DISABLE_VARIABLE_TEMPLATES ASIO_DISABLE_SFINAE_VARIABLE_TEMPLATES)
endif()

# yaml-cpp's target has had two names.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# fmt 9 takes nvcc for a compiler without constexpr, but declares some functions constexpr all the same.
if(Kokkos_DEVICES MATCHES "CUDA")
  target_compile_definitions(kozero_flags INTERFACE FMT_USE_CONSTEXPR=1)
endif()
