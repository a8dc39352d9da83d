// Of programs that were built without NCCL, the others' twin.

#include "comm/nccl.hpp"
#include "core/error.hpp"

namespace kozero {

bool built_with_nccl() { return false; }

std::string nccl_version_text(int version) { return std::to_string(version); }

std::string load_nccl() {
  throw Error(
      "this program was built without NCCL (which moves data between NVIDIA's devices); build it where CUDA and "
      "NCCL are (doc/gpu.md), or set parallel.transport: mpi");
}

std::unique_ptr<Collectives> make_nccl_collectives(Ranks&, Ledger&, std::shared_ptr<MessageLane>, NcclOptions const&) {
  load_nccl();
  return nullptr;
}

} // namespace kozero
