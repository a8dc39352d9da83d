# What a build for NVIDIA's devices needs beside Kokkos: the architecture that a preset asks for, and NVIDIA's libraries,
# each an interface target that its one home links. Included where Kokkos has CUDA, or a preset wants it.
#
#   kozero_cublaslt   matrix products; needed
#   kozero_cudnn      attention on tensor cores; where the headers are found. Loads libcudnn when it is first used
#   kozero_nccl       exchange between devices; where its header is found. Loads libnccl when it is first used

include(KozeroCudaArchitecture)

find_package(CUDAToolkit REQUIRED)

if(KOZERO_WERROR AND Kokkos_CXX_COMPILER_ID STREQUAL "NVIDIA") # -Werror alone is for the host's compiler
  target_compile_options(kozero_flags INTERFACE -Werror=all-warnings)
endif()

if(Kokkos_CXX_COMPILER_ID STREQUAL "NVIDIA") # as -ffp-contract=off for hosts: an fma is one that the source says
  target_compile_options(kozero_flags INTERFACE --fmad=false)
endif()

# ---- The driver. Kokkos links libcuda.so.1, which no login node has: plan, check and the like could not start there.
add_library(kozero_cuda_driver STATIC src/core/cuda/driver.cpp)
target_link_libraries(kozero_cuda_driver PUBLIC CUDA::cudart ${CMAKE_DL_LIBS} PRIVATE kozero_flags)
foreach(target IN ITEMS Kokkos::CUDA Kokkos::kokkoscore)
  if(TARGET ${target})
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    list(TRANSFORM libraries REPLACE "^CUDA::cuda_driver$" kozero_cuda_driver)
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
  endif()
endforeach()

# The version that a header's macros tell, "2.28.9"; empty where they are not there.
function(kozero_header_version result header major minor patch)
  set(version "")
  if(EXISTS "${header}")
    file(STRINGS "${header}" lines REGEX "^#define +(${major}|${minor}|${patch}) +[0-9]+")
    foreach(name IN ITEMS ${major} ${minor} ${patch})
      if("${lines}" MATCHES "#define +${name} +([0-9]+)")
        list(APPEND version ${CMAKE_MATCH_1})
      endif()
    endforeach()
    list(JOIN version "." version)
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# ---- cuBLASLt, of the toolkit
find_path(KOZERO_CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT TARGET CUDA::cublasLt OR NOT KOZERO_CUBLASLT_INCLUDE_DIR)
  message(FATAL_ERROR "cuBLASLt was not found in the CUDA toolkit of ${CUDAToolkit_BIN_DIR} (it multiplies matrices); it "
                      "comes with the toolkit as libcublas-dev, in Spack as part of cuda, on PyPI as nvidia-cublas. "
                      "CUDAToolkit_ROOT says which toolkit")
endif()
add_library(kozero_cublaslt INTERFACE)
target_include_directories(kozero_cublaslt SYSTEM INTERFACE "${KOZERO_CUBLASLT_INCLUDE_DIR}")
target_link_libraries(kozero_cublaslt INTERFACE CUDA::cublasLt CUDA::cudart)
kozero_header_version(KOZERO_CUBLASLT_VERSION "${KOZERO_CUBLASLT_INCLUDE_DIR}/cublas_api.h" CUBLAS_VER_MAJOR CUBLAS_VER_MINOR CUBLAS_VER_PATCH)

# ---- cuDNN: its headers and the header-only frontend; the library is loaded at run time
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS "${CUDNN_ROOT}" "$ENV{CUDNN_ROOT}" ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS "${CUDNN_FRONTEND_ROOT}" "$ENV{CUDNN_FRONTEND_ROOT}"
          ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
if(CUDNN_INCLUDE_DIR AND CUDNN_FRONTEND_INCLUDE_DIR)
  add_library(kozero_cudnn INTERFACE)
  target_include_directories(kozero_cudnn SYSTEM INTERFACE "${CUDNN_FRONTEND_INCLUDE_DIR}" "${CUDNN_INCLUDE_DIR}")
  target_compile_definitions(kozero_cudnn INTERFACE NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING)
  target_link_libraries(kozero_cudnn INTERFACE CUDA::cudart ${CMAKE_DL_LIBS})
  kozero_header_version(KOZERO_CUDNN_VERSION "${CUDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
  kozero_header_version(KOZERO_CUDNN_FRONTEND_VERSION "${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h"
                        CUDNN_FRONTEND_MAJOR_VERSION CUDNN_FRONTEND_MINOR_VERSION CUDNN_FRONTEND_PATCH_VERSION)
else()
  set(missing "")
  if(NOT CUDNN_INCLUDE_DIR)
    string(APPEND missing "\n  cudnn.h: NVIDIA's package cudnn, in Spack cudnn, on PyPI nvidia-cudnn-cu${CUDAToolkit_VERSION_MAJOR} (CUDNN_ROOT)")
  endif()
  if(NOT CUDNN_FRONTEND_INCLUDE_DIR)
    string(APPEND missing "\n  cudnn_frontend.h: github.com/NVIDIA/cudnn-frontend, on PyPI nvidia-cudnn-frontend (CUDNN_FRONTEND_ROOT)")
  endif()
  message(WARNING "Attention will go without tensor cores, many times slower, since cuDNN's headers were not found:${missing}\n"
                  "Install them, or say with the variable in brackets where they are.")
endif()

# ---- NCCL: its header; the library is loaded at run time
find_path(NCCL_INCLUDE_DIR nccl.h HINTS "${NCCL_ROOT}" "$ENV{NCCL_ROOT}" ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
if(NCCL_INCLUDE_DIR)
  add_library(kozero_nccl INTERFACE)
  target_include_directories(kozero_nccl SYSTEM INTERFACE "${NCCL_INCLUDE_DIR}")
  target_link_libraries(kozero_nccl INTERFACE CUDA::cudart ${CMAKE_DL_LIBS})
  kozero_header_version(KOZERO_NCCL_VERSION "${NCCL_INCLUDE_DIR}/nccl.h" NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
else()
  message(WARNING "Several ranks will exchange through host memory, many times slower, since nccl.h was not found "
                  "(NVIDIA's package libnccl-dev, in Spack nccl, on PyPI nvidia-nccl-cu${CUDAToolkit_VERSION_MAJOR}). "
                  "Install it, or say with NCCL_ROOT where it is.")
endif()

message(STATUS "CUDA libraries: cuBLASLt ${KOZERO_CUBLASLT_VERSION}, cuDNN ${KOZERO_CUDNN_VERSION}, its frontend "
               "${KOZERO_CUDNN_FRONTEND_VERSION}, NCCL ${KOZERO_NCCL_VERSION}")
