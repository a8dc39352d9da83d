#pragma once
#include "bench/triad.hpp"
#include "core/launch.hpp"
#include "core/ledger.hpp"
#include "optim/adamw.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace kozero {

/// How AdamW's benchmark fills its arrays. Warm: as training has them, nowhere so small that arithmetic slows down.
/// Cold: rows that have had no gradient for long.
enum class Moments { warm, cold };
/// Where new parameters go: fp32 ones on the device are the master.
enum class AdamResult { apart, in_master };

/// Moments of rows that have had no gradient for long, subnormal after 1, 2, … updates: those of a model's rows become
/// so one after another.
struct DecayedMoments {
  static constexpr std::int64_t crossing = 4; // updates
  static constexpr std::int64_t row_elements = 1024;
  float m[crossing];
  float v[crossing];
};

inline DecayedMoments decayed_moments() {
  constexpr float least_normal = std::numeric_limits<float>::min();
  auto const [beta1, beta2] = OptimizerConfig().betas;
  DecayedMoments decayed{};
  double of_m = 1;
  double of_v = 1;
  for (std::int64_t update = 0; update < DecayedMoments::crossing; ++update) {
    of_m *= beta1;
    of_v *= beta2;
    decayed.m[update] = least_normal / static_cast<float>(of_m);
    decayed.v[update] = least_normal / static_cast<float>(of_v);
  }
  return decayed;
}

/// The state of a number of parameters in the memory that a lane works on: the host's or the device's.
template <class T, class G, class AnyLane>
class AdamArrays {
public:
  static constexpr bool on_host = std::is_same_v<AnyLane, HostLane>;
  using Memory = std::conditional_t<on_host, HostMemory, DeviceMemory>;

  AdamArrays(std::int64_t count, AdamResult result, Ledger& ledger)
      : count_(count), result_(result), master_(ledger, Category::master, "bench", count, Init::none),
        m_(ledger, Category::first_moment, "bench", count, Init::none),
        v_(ledger, Category::second_moment, "bench", count, Init::none),
        gradient_(ledger, Category::gradients, "bench", count, Buffer<G, Memory>::Init::none),
        parameter_(ledger, Category::parameters, "bench", result == AdamResult::apart ? count : 0,
                   Buffer<T, Memory>::Init::none) {
    fill(Moments::warm, count);
  }

  std::int64_t bytes_per_parameter() const {
    return static_cast<std::int64_t>(6 * sizeof(float) + sizeof(G) +
                                     (result_ == AdamResult::apart ? 2 * sizeof(T) : 0));
  }
  std::int64_t count() const { return count_; }

  /// Of the first `count` parameters.
  void step(std::int64_t count) const { adamw_step(AnyLane(), shard(count), scalars()); }
  void step_by_this_thread(std::int64_t count) const { adamw_step_by_this_thread(shard(count), scalars()); }

  /// Leaves the numbers as they are.
  void triad() const { run_triad(AnyLane(), master_.data(), m_.data(), v_.data(), count_); }
  void triad_by_this_thread() const { run_triad_by_this_thread(master_.data(), m_.data(), v_.data(), count_); }

  /// The first `count` parameters, by the threads that will use them.
  void fill(Moments moments, std::int64_t count) const {
    bool const cold = moments == Moments::cold;
    DecayedMoments const decayed = decayed_moments();
    float* const master = master_.data();
    float* const m = m_.data();
    float* const v = v_.data();
    G* const gradient = gradient_.data();
    T* const parameter = result_ == AdamResult::apart ? parameter_.data() : nullptr;
    launch(
        AnyLane(), "kozero::bench::fill", Range{count}, KOKKOS_LAMBDA(std::int64_t i) {
          float const value = static_cast<float>(i % 17 - 8) * 0.02f + 0.01f;
          std::int64_t const row = i / DecayedMoments::row_elements % DecayedMoments::crossing;
          master[i] = value;
          m[i] = cold ? decayed.m[row] : 0.1f * value;
          v[i] = cold ? decayed.v[row] : 0.01f * value * value;
          gradient[i] = static_cast<G>(cold ? 0.0f : 0.5f * value);
          if (parameter) parameter[i] = static_cast<T>(value);
        });
  }

private:
  using Init = typename Buffer<float, Memory>::Init;
  static constexpr std::int64_t cold_crossing =
      4; // updates in which moments become subnormal, a row of a model at a time
  static AdamWScalars scalars() { return {OptimizerConfig(), 1e-4, 10, 1.0}; }
  AdamWShard<T> shard(std::int64_t count) const {
    return {.count = count,
            .decay_count = count,
            .master = master_.data(),
            .m = m_.data(),
            .v = v_.data(),
            .gradient = gradient_.data(),
            .gradient_type = dtype_of<G>,
            .parameter = result_ == AdamResult::apart ? parameter_.data() : nullptr};
  }

  std::int64_t count_;
  AdamResult result_;
  Buffer<float, Memory> master_, m_, v_;
  Buffer<G, Memory> gradient_;
  Buffer<T, Memory> parameter_;
};

} // namespace kozero
