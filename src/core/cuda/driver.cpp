// The calls of CUDA's driver that Kokkos makes, passed on to the driver when they are made. Linked in place of
// libcuda.so.1, which only machines with a GPU have, and without which the program would not even start to tell its
// version. A Kokkos that makes others fails to link: give them a line here.

#include <cuda.h>
#include <dlfcn.h>

namespace {

/// The driver's function of that name; null where there is none.
template <class Function>
Function* find(char const* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW); // as CUDA's runtime does
  return driver ? reinterpret_cast<Function*>(dlsym(driver, name)) : nullptr;
}

template <class... Arguments>
CUresult call(char const* name, Arguments... arguments) {
  auto* const function = find<CUresult CUDAAPI(Arguments...)>(name);
  return function ? function(arguments...) : CUDA_ERROR_STUB_LIBRARY;
}

} // namespace

extern "C" {

// cuda.h gives some functions the names of their newest versions, so those written here are what is linked.
CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) { return call("cuCtxGetDevice", device); }
CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) { return call("cuCtxPushCurrent_v2", context); }
CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) { return call("cuStreamGetCtx", stream, context); }

} // extern "C"
