#include "optim/adamw.hpp"

#include "core/host_simd.hpp"
#include "core/packs.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

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

/// Whether the parameters are an array beside the master, or the master itself. Not in the unnamed namespace: kernels
/// of an accelerator are templates of it.
enum class Parameters { apart, in_master };

namespace {

constexpr std::int64_t tile = 16384; // elements a thread takes at a time: 16 bytes each fit the second-level cache
constexpr std::int64_t group = 32;   // elements between prefetches: one line of 16-bit numbers, two of floats
constexpr std::int64_t ahead = 512;  // elements

/// Elements [begin, end) of a shard, as one loop that vectorises.
template <class G, Parameters where, class T>
KOKKOS_FORCEINLINE_FUNCTION void update(AdamWShard<T> const& shard, std::int64_t begin, std::int64_t end, float keep,
                                        AdamWScalars const& s) {
  G const* const gradient = static_cast<G const*>(shard.gradient);
  float* const master = shard.master;
  float* const m = shard.m;
  float* const v = shard.v;
  T* const parameter = shard.parameter;
  KOZERO_INDEPENDENT
  for (std::int64_t i = begin; i < end; ++i) {
    float const p = adamw_element(master[i], m[i], v[i], static_cast<float>(gradient[i]), keep, s);
    if constexpr (where == Parameters::apart) parameter[i] = static_cast<T>(p);
  }
}

/// Elements [begin, end) of a shard on the host. Four or five arrays at once are more than the processor's own
/// prefetchers follow at the speed of memory, so the loop asks for its lines itself: `kozero bench adam` measures what
/// that gains.
template <class G, Parameters where, class T>
void run_range(AdamWShard<T> const& shard, std::int64_t begin, std::int64_t end, float keep,
               AdamWScalars const& scalars) {
  host_simd([shard, begin, end, keep, s = scalars] {
    std::int64_t i = begin;
    for (; i + group <= end; i += group) {
      prefetch<group>(shard.master, i + ahead);
      prefetch<group>(shard.m, i + ahead);
      prefetch<group>(shard.v, i + ahead);
      prefetch<group>(static_cast<G const*>(shard.gradient), i + ahead);
      if constexpr (where == Parameters::apart) prefetch<group>(shard.parameter, i + ahead);
      update<G, where>(shard, i, i + group, keep, s);
    }
    update<G, where>(shard, i, end, keep, s);
  });
}

template <class G, Parameters where, class T>
void run_tile(AdamWShard<T> const& shard, std::int64_t index, AdamWScalars const& scalars) {
  std::int64_t const begin = index * tile;
  std::int64_t const end = std::min(shard.count, begin + tile);
  std::int64_t const turn = std::clamp(shard.decay_count, begin, end);
  run_range<G, where>(shard, begin, turn, scalars.keep, scalars);
  run_range<G, where>(shard, turn, end, 1.0f, scalars);
}

template <class T>
std::int64_t tiles_of(AdamWShard<T> const& shard) {
  return (shard.count + tile - 1) / tile;
}

/// A tile of a host's thread. The schedule is static, so that a thread finds the elements that it was the first to
/// touch.
template <class G, Parameters where, class T>
struct Tile {
  AdamWShard<T> shard;
  AdamWScalars scalars;
  void operator()(std::int64_t index) const { run_tile<G, where>(shard, index, scalars); }
};

} // namespace

/// Elements of an accelerator's thread.
template <class G, Parameters where, class T>
struct AdamWElements {
  static constexpr int k = pack_size<float>;
  Vec<float> master, m, v;
  Vec<G const> gradient;
  Vec<T> parameter;
  std::int64_t decay_count;
  AdamWScalars scalars;

  AdamWElements(AdamWShard<T> const& shard, AdamWScalars const& s)
      : master(shard.master, shard.count), m(shard.m, shard.count), v(shard.v, shard.count),
        gradient(static_cast<G const*>(shard.gradient), shard.count), parameter(shard.parameter, shard.count),
        decay_count(shard.decay_count), scalars(s) {}

  Packs packs() const { return packs_of<k>(master, m, v, gradient, parameter); }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<n> at) const {
    Floats<n> p = load(master, at);
    Floats<n> first = load(m, at);
    Floats<n> second = load(v, at);
    Floats<n> const g = load(gradient, at);
    for (int j = 0; j < n; ++j) {
      float const keep = at.begin + j < decay_count ? scalars.keep : 1.0f;
      adamw_element(p.at[j], first.at[j], second.at[j], g.at[j], keep, scalars);
    }
    store(master, at, p);
    store(m, at, first);
    store(v, at, second);
    if constexpr (where == Parameters::apart) store(parameter, at, p);
  }
};

namespace {

template <class G, Parameters where, class AnyLane, class T>
void run(AnyLane const& lane, AdamWShard<T> const& shard, AdamWScalars const& scalars) {
  if constexpr (runs_on_host<AnyLane>) {
    launch(lane, "kozero::adamw::host", Range{tiles_of(shard)}, Tile<G, where, T>{shard, scalars});
  } else {
    using Elements = AdamWElements<G, where, T>;
    Elements const elements(shard, scalars);
    launch_packs<Elements::k>(lane, "kozero::adamw::device", shard.count, elements.packs(), elements);
  }
}

template <Parameters value>
using Where = std::integral_constant<Parameters, value>;

/// run_as(type, where) with the type of the gradients and the place of the parameters.
template <class T, class Run>
void with_kind(AdamWShard<T> const& shard, Run const& run_as) {
  KOZERO_ASSERT(shard.gradient_type == DType::f32 || shard.gradient_type == dtype_of<T>);
  if constexpr (std::is_same_v<T, float>) {
    if (shard.parameter == nullptr) return run_as(float(), Where<Parameters::in_master>());
  }
  KOZERO_ASSERT(shard.parameter != nullptr || shard.count == 0);
  if constexpr (!std::is_same_v<T, float>) {
    if (shard.gradient_type != DType::f32) return run_as(T(), Where<Parameters::apart>());
  }
  run_as(float(), Where<Parameters::apart>());
}

} // namespace

template <class AnyLane, class T>
void adamw_step(AnyLane const& lane, AdamWShard<T> const& shard, AdamWScalars const& scalars) {
  if (shard.count == 0) return;
  with_kind(shard, [&]<class G, Parameters where>(G, Where<where>) { run<G, where>(lane, shard, scalars); });
}

template <class T>
void adamw_step_by_this_thread(AdamWShard<T> const& shard, AdamWScalars const& scalars) {
  with_kind(shard, [&]<class G, Parameters where>(G, Where<where>) {
    for (std::int64_t index = 0; index < tiles_of(shard); ++index) run_tile<G, where>(shard, index, scalars);
  });
}

#define KOZERO_INSTANTIATE(T)                                                                                          \
  template void adamw_step(HostLane const&, AdamWShard<T> const&, AdamWScalars const&);                                \
  template void adamw_step(Lane const&, AdamWShard<T> const&, AdamWScalars const&);                                    \
  template void adamw_step_by_this_thread(AdamWShard<T> const&, AdamWScalars const&);

KOZERO_INSTANTIATE(float)
KOZERO_INSTANTIATE(bf16)
KOZERO_INSTANTIATE(fp16)

} // namespace kozero
