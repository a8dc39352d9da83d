#include "support/catch.hpp"

#include "core/host_simd.hpp"
#include "core/rng.hpp"
#include "optim/adamw.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace kozero;

namespace {

struct State {
  std::vector<float> master, m, v, gradient;
};

State random_state(std::int64_t count) {
  State state;
  for (std::int64_t i = 0; i < count; ++i) {
    auto const draw = [&](std::uint32_t stream) {
      return static_cast<float>(random_normal({7, RngPurpose::initialise, 0, stream}, static_cast<std::uint64_t>(i)));
    };
    state.master.push_back(draw(0));
    state.m.push_back(0.1f * draw(1));
    state.v.push_back(0.01f * draw(2) * draw(2));
    state.gradient.push_back(draw(3));
  }
  return state;
}

template <class T>
AdamWShard<T> part(State& state, std::vector<T>& parameter, std::int64_t begin, std::int64_t end,
                   std::int64_t decay_end) {
  return {end - begin,
          std::clamp<std::int64_t>(decay_end - begin, 0, end - begin),
          state.master.data() + begin,
          state.m.data() + begin,
          state.v.data() + begin,
          state.gradient.data() + begin,
          DType::f32,
          parameter.data() + begin};
}

bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr std::int64_t count = 70001;
constexpr std::int64_t decay_end = 40003;

} // namespace

TEST_CASE("AdamW follows its formula, in double") {
  OptimizerConfig const config;
  State state = random_state(count);
  State const before = state;
  std::vector<bf16> parameter(count);
  double const lr = 3e-4;
  double const clip = 0.37;
  std::int64_t const t = 5;
  adamw_step(HostLane(), part(state, parameter, 0, count, decay_end), AdamWScalars(config, lr, t, clip));
  double largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    double const g = clip * before.gradient[i];
    double const m = config.betas[0] * before.m[i] + (1 - config.betas[0]) * g;
    double const v = config.betas[1] * before.v[i] + (1 - config.betas[1]) * g * g;
    double const decayed = before.master[i] * (i < decay_end ? 1 - lr * config.weight_decay : 1);
    double const step = lr / (1 - std::pow(config.betas[0], t)) * m /
                        (std::sqrt(v) / std::sqrt(1 - std::pow(config.betas[1], t)) + config.eps);
    largest = std::max(largest, std::abs(state.master[i] - (decayed - step)) / (std::abs(decayed) + std::abs(step)));
    REQUIRE(std::abs(state.m[i] - m) <= 1e-6 * (std::abs(before.m[i]) + std::abs(g)));
    REQUIRE(std::abs(state.v[i] - v) <= 1e-6 * v);
    REQUIRE(parameter[i].bits() == bf16(state.master[i]).bits());
  }
  CHECK(largest < 2e-7);
}

TEST_CASE("a block in one piece and in many has the same bits") { // CASES 11
  OptimizerConfig const config;
  AdamWScalars const scalars(config, 1e-3, 3, 1.0);
  State whole = random_state(count);
  State pieces = whole;
  std::vector<float> parameter(count), parameter_of_pieces(count);
  adamw_step(HostLane(), part(whole, parameter, 0, count, decay_end), scalars);
  std::int64_t const sizes[] = {1, 7, 64, 1000, 16384, 3};
  std::int64_t begin = 0;
  for (int i = 0; begin < count; ++i) {
    std::int64_t const end = std::min(count, begin + sizes[i % 6]);
    adamw_step(HostLane(), part(pieces, parameter_of_pieces, begin, end, decay_end), scalars);
    begin = end;
  }
  CHECK(same_bits(whole.master, pieces.master));
  CHECK(same_bits(whole.m, pieces.m));
  CHECK(same_bits(whole.v, pieces.v));
  CHECK(same_bits(parameter, parameter_of_pieces));
}

TEST_CASE("only elements before the end of the decayed part shrink when gradients are zero") { // CASES 10
  OptimizerConfig const config;
  State state = random_state(count);
  std::fill(state.gradient.begin(), state.gradient.end(), 0.0f);
  std::fill(state.m.begin(), state.m.end(), 0.0f);
  std::fill(state.v.begin(), state.v.end(), 0.0f);
  State const before = state;
  std::vector<float> parameter(count);
  adamw_step(HostLane(), part(state, parameter, 0, count, decay_end), AdamWScalars(config, 1e-3, 1, 1.0));
  float const keep = 1.0f - 1e-3f * 0.1f;
  for (std::int64_t i = 0; i < count; ++i) {
    REQUIRE(state.master[i] == (i < decay_end ? keep * before.master[i] : before.master[i]));
  }
}

#ifdef KOZERO_TWO_HOST_TARGETS
TEST_CASE("AVX2 and AVX-512 have the same bits") {
  bool const wide = host_uses_avx512();
  AdamWScalars const scalars(OptimizerConfig(), 1e-3, 3, 0.5);
  State first = random_state(count);
  State second = first;
  std::vector<bf16> parameter(count);
  adamw_step(HostLane(), part(first, parameter, 0, count, decay_end), scalars);
  host_uses_avx512() = false;
  adamw_step(HostLane(), part(second, parameter, 0, count, decay_end), scalars);
  host_uses_avx512() = wide;
  CHECK(same_bits(first.master, second.master));
  CHECK(same_bits(first.m, second.m));
  CHECK(same_bits(first.v, second.v));
}
#endif
