#include "optim/adamw.hpp"

#include "core/host_simd.hpp"

#include <algorithm>
#include <cmath>

namespace kozero {

AdamWScalars::AdamWScalars(OptimizerConfig const& config, double lr, std::int64_t t, double scale) {
  double const b1 = config.betas[0];
  double const b2 = config.betas[1];
  beta1 = static_cast<float>(b1);
  one_minus_beta1 = static_cast<float>(1.0 - b1);
  beta2 = static_cast<float>(b2);
  one_minus_beta2 = static_cast<float>(1.0 - b2);
  step_size = static_cast<float>(lr / (1.0 - std::pow(b1, static_cast<double>(t))));
  inverse_sqrt_bias2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(b2, static_cast<double>(t))));
  eps = static_cast<float>(config.eps);
  keep = static_cast<float>(1.0 - lr * config.weight_decay);
  gradient_scale = static_cast<float>(scale);
}

namespace {

constexpr std::int64_t tile = 16384; // elements a thread takes at a time: 16 bytes each fit the second-level cache

/// Elements [begin, end) of a shard on the host, as one loop that vectorises.
template <class G, class T>
void run_range(AdamWShard<T> const& shard, std::int64_t begin, std::int64_t end, float keep,
               AdamWScalars const& scalars) {
  host_simd([shard, begin, end, keep, s = scalars] {
    G const* const gradient = static_cast<G const*>(shard.gradient);
    float* const master = shard.master;
    float* const m = shard.m;
    float* const v = shard.v;
    KOZERO_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      shard.parameter[i] =
          static_cast<T>(adamw_element(master[i], m[i], v[i], static_cast<float>(gradient[i]), keep, s));
    }
  });
}

template <class G, class T>
void run(HostLane const& lane, AdamWShard<T> const& shard, AdamWScalars const& scalars) {
  std::int64_t const tiles = (shard.count + tile - 1) / tile;
  Kokkos::parallel_for("kozero::adamw::host", Kokkos::RangePolicy<HostExec>(lane.exec(), 0, tiles),
                       [=](std::int64_t index) {
                         std::int64_t const begin = index * tile;
                         std::int64_t const end = std::min(shard.count, begin + tile);
                         std::int64_t const turn = std::clamp(shard.decay_count, begin, end);
                         run_range<G>(shard, begin, turn, scalars.keep, scalars);
                         run_range<G>(shard, turn, end, 1.0f, scalars);
                       });
}

} // namespace

#if KOZERO_HAS_ACCELERATOR
template <class G, class T>
void run(Lane const& lane, AdamWShard<T> const& shard, AdamWScalars const& scalars) {
  Kokkos::parallel_for(
      "kozero::adamw::device", Kokkos::RangePolicy<DeviceExec>(lane.exec(), 0, shard.count),
      KOKKOS_LAMBDA(std::int64_t i) {
        G const* const gradient = static_cast<G const*>(shard.gradient);
        float const keep = i < shard.decay_count ? scalars.keep : 1.0f;
        shard.parameter[i] = static_cast<T>(
            adamw_element(shard.master[i], shard.m[i], shard.v[i], static_cast<float>(gradient[i]), keep, scalars));
      });
}
#endif

template <class Exec, class T>
void adamw_step(BasicLane<Exec> const& lane, AdamWShard<T> const& shard, AdamWScalars const& scalars) {
  if (shard.count == 0) return;
  KOZERO_ASSERT(shard.gradient_type == DType::f32 || shard.gradient_type == dtype_of<T>);
  if (shard.gradient_type == DType::f32) {
    run<float>(lane, shard, scalars);
  } else {
    run<T>(lane, shard, scalars);
  }
}

template void adamw_step(HostLane const&, AdamWShard<float> const&, AdamWScalars const&);
template void adamw_step(HostLane const&, AdamWShard<bf16> const&, AdamWScalars const&);
template void adamw_step(HostLane const&, AdamWShard<fp16> const&, AdamWScalars const&);
#if KOZERO_HAS_ACCELERATOR
template void adamw_step(Lane const&, AdamWShard<float> const&, AdamWScalars const&);
template void adamw_step(Lane const&, AdamWShard<bf16> const&, AdamWScalars const&);
template void adamw_step(Lane const&, AdamWShard<fp16> const&, AdamWScalars const&);
#endif

} // namespace kozero
