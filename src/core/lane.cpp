#include "core/lane.hpp"

#include "core/error.hpp"

namespace kozero {

Lane separate_lane() {
#if KOZERO_HAS_ACCELERATOR && KOKKOS_VERSION >= 40000
  return Lane(Kokkos::Experimental::partition_space(DeviceExec(), 1).front());
#else
  return Lane();
#endif
}

#if defined(KOKKOS_ENABLE_CUDA)

namespace {

void check(cudaError_t code, char const* call) {
  if (code != cudaSuccess) {
    throw Error(fmt::format("{} failed ({}); look at the device and its driver", call, cudaGetErrorString(code)));
  }
}

} // namespace

void order_after(Lane const& later, Lane const& earlier) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check(cudaEventRecord(event, earlier.exec().cuda_stream()), "cudaEventRecord");
  check(cudaStreamWaitEvent(later.exec().cuda_stream(), event, 0), "cudaStreamWaitEvent");
  check(cudaEventDestroy(event), "cudaEventDestroy"); // CUDA keeps it until it has happened
}

#else

// Program order does it on a host; other accelerators' events are not used yet.
void order_after(Lane const&, Lane const& earlier) {
  if constexpr (!host_reaches_device) earlier.fence();
}

#endif

} // namespace kozero
