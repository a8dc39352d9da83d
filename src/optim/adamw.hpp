#pragma once
#include "config/config.hpp"
#include "core/dtype.hpp"
#include "core/float_bits.hpp"
#include "core/lane.hpp"

#include <cstdint>

namespace kozero {

/// The scalars of one AdamW step (Loshchilov and Hutter, Decoupled weight decay regularization, 2019, algorithm 2),
/// computed in double and rounded once.
struct AdamWScalars {
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float step_size;          // lr / (1 - beta1^t)
  float inverse_sqrt_bias2; // 1 / sqrt(1 - beta2^t)
  float eps;
  float keep;           // 1 - lr * weight_decay, for tensors that decay
  float gradient_scale; // the clip coefficient over the loss scale

  /// `t` counts from 1: the number of this update among those applied.
  AdamWScalars(OptimizerConfig const& config, double lr, std::int64_t t, double gradient_scale);
};

/// x, or 0 where x is subnormal. By its bits, so that no flag of the processor has a say.
KOKKOS_FORCEINLINE_FUNCTION float flush_subnormal(float x) {
  constexpr std::uint32_t exponent = 0x7f800000;
  return (detail::bits_of_float(x) & exponent) == 0 ? 0.0f : x;
}

/// The one expression of the optimizer, on every backend.
///   m ← β1 m + (1-β1) g;  v ← β2 v + (1-β2) g²;  p ← keep·p - step_size · m / (√v / √(1-β2ᵗ) + eps)
/// Subnormal m and v become 0: processors are slow with them, and rounding would hold an m that no gradient feeds at a
/// few of the smallest numbers for ever.
KOKKOS_FORCEINLINE_FUNCTION float adamw_element(float& p, float& m, float& v, float gradient, float keep,
                                                AdamWScalars const& s) {
  float const g = gradient * s.gradient_scale;
  m = flush_subnormal(math::fma(s.beta1, m, s.one_minus_beta1 * g));
  v = flush_subnormal(math::fma(s.beta2, v, s.one_minus_beta2 * g * g));
  float const denominator = math::fma(math::sqrt(v), s.inverse_sqrt_bias2, s.eps);
  p = math::fma(-s.step_size, m / denominator, keep * p);
  return p;
}

/// Flat state that one step runs over: an interval of a block, decayed elements first. All arrays have `count`
/// elements in the memory of the space that the step runs on.
template <class T>
struct AdamWShard {
  std::int64_t count = 0;
  std::int64_t decay_count = 0; // elements of this shard before the block's decay_end
  float* master = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  void const* gradient = nullptr;
  DType gradient_type = DType::f32; // or that of T
  T* parameter = nullptr; // out: the master rounded to the compute type; null where it is the master (T is float)
};

/// One AdamW step as a parallel_for over `shard`, in the lane's memory: the device's, or the host's for offloaded
/// state.
template <class AnyLane, class T>
void adamw_step(AnyLane const& lane, AdamWShard<T> const& shard, AdamWScalars const& scalars);

/// The same step, the same bits, on host memory by the calling thread alone.
template <class T>
void adamw_step_by_this_thread(AdamWShard<T> const& shard, AdamWScalars const& scalars);

} // namespace kozero
