# The architecture is Kokkos' own choice; a preset says which it expects in KOZERO_CUDA_ARCHITECTURE.
if(KOZERO_CUDA_ARCHITECTURE)
  if(NOT Kokkos_DEVICES MATCHES "CUDA")
    message(FATAL_ERROR "Kokkos has the backends ${Kokkos_DEVICES} (this preset wants CUDA on ${KOZERO_CUDA_ARCHITECTURE}); "
                        "point Kokkos_ROOT to a Kokkos built with -DKokkos_ENABLE_CUDA=ON (doc/gpu.md)")
  endif()
  if(NOT "${Kokkos_ARCH}" MATCHES "(^|;)${KOZERO_CUDA_ARCHITECTURE}[0-9]+A?(;|$)")
    message(FATAL_ERROR "Kokkos was built for '${Kokkos_ARCH}' (this preset wants ${KOZERO_CUDA_ARCHITECTURE}, and Kokkos "
                        "decides what code is made); take the preset of that architecture, or point Kokkos_ROOT to a "
                        "Kokkos built with -DKokkos_ARCH_${KOZERO_CUDA_ARCHITECTURE}…=ON (doc/gpu.md)")
  endif()
endif()
