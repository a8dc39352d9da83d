#include "kernels/gemm_workspace.hpp"

#include "core/error.hpp"
#include "kernels/gemm.hpp"

#include <algorithm>
#include <vector>

namespace kozero {

namespace {

/// All that serve a lane, in the order they came.
std::vector<GemmWorkspace const*>& in_service() {
  static std::vector<GemmWorkspace const*> all;
  return all;
}

// Memory may begin anywhere.
std::int64_t padded_bytes() {
  std::int64_t const bytes = gemm_traits().workspace_bytes;
  return bytes == 0 ? 0 : bytes + GemmWorkspace::alignment;
}

} // namespace

GemmWorkspace::GemmWorkspace(LazyLane const& lane, Fp32Products fp32, Ledger& ledger) : fp32_(fp32) {
  if (ledger.allocates() && fp32 == Fp32Products::tf32 && !gemm_traits().has_tf32) {
    throw InputError(
        fmt::format("precision.tf32 is true (this build multiplies by {}, which has no TF32); write false, "
                    "or run it where the products are cuBLASLt's",
                    gemm_backend()));
  }
  if (padded_bytes() > 0) {
    using Memory = DeviceBuffer<unsigned char>;
    memory_ = Memory(ledger, Category::workspace, "matrix products", padded_bytes(), Memory::Init::none);
  }
  if (!ledger.allocates()) return;
  lane_ = lane.get();
  in_service().push_back(this);
}

GemmWorkspace::~GemmWorkspace() { std::erase(in_service(), this); }

GemmWorkspace const& GemmWorkspace::of(Lane const& lane) {
  auto const& all = in_service();
  auto const found = std::find_if(all.rbegin(), all.rend(), // the newest
                                  [&](GemmWorkspace const* one) { return one->lane_->id() == lane.id(); });
  KOZERO_REQUIRE(found != all.rend(), "the lane '{}' has no GemmWorkspace (a fault of kozero); please report it",
                 lane.name());
  return **found;
}

void* GemmWorkspace::data() const {
  auto const begin = reinterpret_cast<std::uintptr_t>(memory_.data());
  return reinterpret_cast<void*>((begin + alignment - 1) / alignment * alignment);
}

std::int64_t GemmWorkspace::bytes() const { return memory_.size() == 0 ? 0 : memory_.size() - alignment; }

} // namespace kozero
