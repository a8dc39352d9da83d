#pragma once
#include "core/lane.hpp"

namespace kozero {

/// The stream that a library is to give its work to, a cudaStream_t; null where there are none.
inline void* stream_of([[maybe_unused]] Lane::Exec const& exec) {
#if defined(KOKKOS_ENABLE_CUDA)
  return exec.cuda_stream();
#else
  return nullptr;
#endif
}

} // namespace kozero
