#pragma once
// What the matrix products of a lane share.

#include "core/lane.hpp"
#include "core/ledger.hpp"

#include <cstdint>
#include <optional>

namespace kozero {

/// How fp32 operands are multiplied: as they are; or rounded to TF32, 10 bits after the point, as tensor cores take
/// them. Sums are fp32 either way.
enum class Fp32Products { exact, tf32 };

/// Device memory that the library behind gemm works in, entered in a ledger, and how it multiplies fp32. Each lane that
/// products are given to has one, which must outlive them; of several on one lane the newest serves.
///
///     GemmWorkspace const workspace(lane, Fp32Products::exact, ledger);
///     gemm(lane, …);
class GemmWorkspace {
public:
  /// With a ledger that counts, the memory is counted and no lane is asked for. InputError where the library of this
  /// build has no TF32, but not with a ledger that counts: a deck may be planned elsewhere than it runs.
  GemmWorkspace(LazyLane const& lane, Fp32Products fp32, Ledger& ledger);
  GemmWorkspace(GemmWorkspace const&) = delete;
  GemmWorkspace& operator=(GemmWorkspace const&) = delete;
  ~GemmWorkspace();

  /// The lane's newest. Error where it has none.
  static GemmWorkspace const& of(Lane const& lane);

  Fp32Products fp32() const { return fp32_; }
  /// bytes() of memory, from a multiple of `alignment` on; null and 0 where the library wants none.
  void* data() const;
  std::int64_t bytes() const;
  static constexpr std::int64_t alignment = 256;

private:
  Fp32Products fp32_;
  std::optional<Lane> lane_; // none where it is only counted
  DeviceBuffer<unsigned char> memory_;
};

/// What the library behind gemm is like: each twin has its own.
struct GemmTraits {
  std::int64_t workspace_bytes = 0;
  bool has_tf32 = false;
};
GemmTraits gemm_traits();

} // namespace kozero
