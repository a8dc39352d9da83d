#include "comm/nccl.hpp"
#include "comm/nccl_calls.hpp"
#include "core/error.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace kozero {

namespace {

constexpr char const* library_name = "libnccl.so.2";
constexpr char const* advice = "load the module that kozero was built with (LD_LIBRARY_PATH), or set "
                               "parallel.transport: mpi";

template <class Function>
void find(void* library, char const* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  KOZERO_REQUIRE(function != nullptr, "{} has no {} (it is older than 2.18); {}", library_name, name, advice);
}

NcclCalls load() {
  // All ways of its collectives are connected when the communicator is, not each at its first use: there ranks would
  // wait for each other in mid training, and memory of the device may be short by then. What the user says holds.
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  void* const library = dlopen(library_name, RTLD_NOW);
  if (library == nullptr) {
    char const* const reason = dlerror();
    throw Error(fmt::format("NCCL cannot be loaded ({}); {}", reason ? reason : "no reason is given", advice));
  }
  NcclCalls calls;
#define KOZERO_NCCL_FIND(member, function) find(library, #function, calls.member);
  KOZERO_NCCL_FUNCTIONS(KOZERO_NCCL_FIND)
#undef KOZERO_NCCL_FIND
  int version = 0;
  KOZERO_REQUIRE(calls.get_version(&version) == ncclSuccess && version >= oldest_nccl,
                 "{} is NCCL {} (at least 2.18 is wanted); {}", library_name, nccl_version_text(version), advice);
  return calls;
}

} // namespace

NcclCalls const& nccl_calls() {
  static NcclCalls const calls = load(); // asked again where that failed
  return calls;
}

} // namespace kozero
