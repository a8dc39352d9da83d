#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/host_targets.hpp"

#include "core/rng.hpp"
#include "optim/adamw.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

using namespace kozero;
using namespace kozero::test;

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

/// Gradients of type G, which the state keeps as the floats that they are.
template <class G>
std::vector<G> round_gradients(State& state) {
  std::vector<G> rounded;
  for (float& gradient : state.gradient) {
    rounded.push_back(static_cast<G>(gradient));
    gradient = static_cast<float>(rounded.back());
  }
  return rounded;
}

template <class T>
std::vector<float> as_floats(std::vector<T> const& values) {
  return {values.begin(), values.end()};
}

bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// The formula of doc/numerics.md, element by element, with what the C library knows of floats.
void step_by_hand(State& state, std::int64_t decay_end, AdamWScalars const& s) {
  auto const flushed = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? 0.0f : x; };
  for (std::size_t i = 0; i < state.master.size(); ++i) {
    float& p = state.master[i];
    float& m = state.m[i];
    float& v = state.v[i];
    float const g = s.gradient_scale * state.gradient[i];
    float const keep = static_cast<std::int64_t>(i) < decay_end ? s.keep : 1.0f;
    m = flushed(std::fma(s.beta1, m, s.one_minus_beta1 * g));
    v = flushed(std::fma(s.beta2, v, s.one_minus_beta2 * g * g));
    p = std::fma(-s.step_size, m / std::fma(std::sqrt(v), s.inverse_sqrt_bias2, s.eps), keep * p);
  }
}

bool is_subnormal(float x) { return std::fpclassify(x) == FP_SUBNORMAL; }

/// Moments and gradients that lead to both sides of the least normal number; a third of the gradients are zero.
State tiny_state(std::int64_t count) {
  State state = random_state(count);
  for (std::size_t i = 0; i < state.m.size(); ++i) {
    state.m[i] *= 0x1p-122f;
    state.v[i] *= 0x1p-119f;
    state.gradient[i] *= i % 3 == 0 ? 0.0f : i % 3 == 1 ? 0x1p-123f : 0x1p-61f;
  }
  return state;
}

constexpr std::int64_t count = 70001;
constexpr std::int64_t decay_end = 40003;

/// What a step on the device makes of elements begin … end-1 of a state: master, m, v and parameters.
template <class T, class G>
std::vector<std::vector<float>> step_on_device(State const& state, std::vector<G> const& gradients, std::int64_t begin,
                                               std::int64_t end, AdamWScalars const& scalars) {
  DeviceArray<float> const master(state.master), m(state.m), v(state.v);
  DeviceArray<G> const gradient(gradients);
  DeviceArray<T> const parameter(std::vector<T>(gradients.size(), T(0.0f)));
  AdamWShard<T> const shard{end - begin,           std::clamp<std::int64_t>(decay_end - begin, 0, end - begin),
                            master.data() + begin, m.data() + begin,
                            v.data() + begin,      gradient.data() + begin,
                            dtype_of<G>,           parameter.data() + begin};
  adamw_step(Lane(), shard, scalars);
  return {master.get(), m.get(), v.get(), as_floats(parameter.get())};
}

} // namespace

/// A compute type and a type of gradients.
using Types = std::tuple<std::pair<bf16, bf16>, std::pair<bf16, float>, std::pair<float, float>>;

TEMPLATE_LIST_TEST_CASE("AdamW follows its formula, in double", "", Types) {
  using T = typename TestType::first_type;
  using G = typename TestType::second_type;
  OptimizerConfig const config;
  State state = random_state(count);
  auto const gradients = round_gradients<G>(state);
  State const before = state;
  std::vector<T> parameter(count);
  double const lr = 3e-4;
  double const clip = 0.37;
  std::int64_t const t = 5;
  AdamWShard<T> shard = part(state, parameter, 0, count, decay_end);
  shard.gradient = gradients.data();
  shard.gradient_type = dtype_of<G>;
  adamw_step(HostLane(), shard, AdamWScalars(config, lr, t, clip));
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
    REQUIRE(static_cast<float>(parameter[i]) == static_cast<float>(static_cast<T>(state.master[i])));
  }
  CHECK(largest < 2e-7);
}

TEMPLATE_LIST_TEST_CASE("the device's step has the bits of the host's, wherever a shard begins and ends", "", Types) {
  using T = typename TestType::first_type;
  using G = typename TestType::second_type;
  AdamWScalars const scalars(OptimizerConfig(), 3e-4, 5, 0.37);
  State const before = random_state(count);
  for (std::int64_t const begin : {0, 1, 4, 40002}) {
    for (std::int64_t const end : {begin, begin + 1, begin + 4, count - 1, count}) {
      INFO(begin << " to " << end);
      State state = before;
      auto const gradients = round_gradients<G>(state);
      auto const got = step_on_device<T>(state, gradients, begin, end, scalars);
      std::vector<T> parameter(count, T(0.0f));
      AdamWShard<T> shard = part(state, parameter, begin, end, decay_end);
      shard.gradient = gradients.data() + begin;
      shard.gradient_type = dtype_of<G>;
      adamw_step(HostLane(), shard, scalars);
      CHECK(same_bits(got[0], state.master));
      CHECK(same_bits(got[1], state.m));
      CHECK(same_bits(got[2], state.v));
      CHECK(same_bits(got[3], as_floats(parameter)));
    }
  }
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

TEST_CASE("no elements, one, and those around the ends of tiles and groups are each updated once") {
  AdamWScalars const scalars(OptimizerConfig(), 1e-3, 3, 1.0);
  for (std::int64_t const n : {0, 1, 31, 32, 33, 543, 16383, 16384, 16385, 32769}) {
    CAPTURE(n);
    State state = random_state(n + 1); // the last must stay
    State expected = state;
    std::vector<float> parameter(n + 1, -1.0f);
    adamw_step(HostLane(), part(state, parameter, 0, n, n / 2), scalars);
    for (std::int64_t i = 0; i < n; ++i) {
      adamw_element(expected.master[i], expected.m[i], expected.v[i], expected.gradient[i],
                    i < n / 2 ? scalars.keep : 1.0f, scalars);
    }
    REQUIRE(same_bits(state.master, expected.master));
    REQUIRE(same_bits(state.m, expected.m));
    REQUIRE(same_bits(state.v, expected.v));
    REQUIRE(parameter.back() == -1.0f);
    parameter.pop_back();
    expected.master.pop_back();
    REQUIRE(same_bits(parameter, expected.master));
  }
}

TEMPLATE_LIST_TEST_CASE("one thread or many, any instruction set: the same bits", "", Types) {
  using T = typename TestType::first_type;
  using G = typename TestType::second_type;
  AdamWScalars const scalars(OptimizerConfig(), 1e-3, 3, 0.5);
  State start = random_state(count);
  auto const gradients = round_gradients<G>(start);
  State expected = start;
  step_by_hand(expected, decay_end, scalars);
  for (HostTarget const target : host_targets()) {
    AsHostTarget const as(target);
    for (bool const alone : {true, false}) {
      CAPTURE(name_of(target), alone);
      State state = start;
      std::vector<T> parameter(count);
      AdamWShard<T> shard = part(state, parameter, 0, count, decay_end);
      shard.gradient = gradients.data();
      shard.gradient_type = dtype_of<G>;
      if (alone) {
        adamw_step_by_this_thread(shard, scalars);
      } else {
        adamw_step(HostLane(), shard, scalars);
      }
      REQUIRE(same_bits(state.master, expected.master));
      REQUIRE(same_bits(state.m, expected.m));
      REQUIRE(same_bits(state.v, expected.v));
      std::vector<T> const rounded(expected.master.begin(), expected.master.end());
      REQUIRE(same_bits(as_floats(parameter), as_floats(rounded)));
    }
  }
}

TEST_CASE("without an array of parameters the master has the same bits") {
  AdamWScalars const scalars(OptimizerConfig(), 1e-3, 3, 0.5);
  for (HostTarget const target : host_targets()) {
    AsHostTarget const as(target);
    for (bool const alone : {true, false}) {
      CAPTURE(name_of(target), alone);
      State state = random_state(count);
      State expected = state;
      step_by_hand(expected, decay_end, scalars);
      std::vector<float> none;
      AdamWShard<float> shard = part(state, none, 0, count, decay_end);
      shard.parameter = nullptr;
      if (alone) {
        adamw_step_by_this_thread(shard, scalars);
      } else {
        adamw_step(HostLane(), shard, scalars);
      }
      CHECK(same_bits(state.master, expected.master));
      CHECK(same_bits(state.m, expected.m));
      CHECK(same_bits(state.v, expected.v));
    }
  }
}

TEST_CASE("moments below the least normal number become zero, all others keep their bits") { // CASES 50
  AdamWScalars const scalars(OptimizerConfig(), 1e-3, 3, 1.0);
  State const start = tiny_state(count);
  State expected = start;
  step_by_hand(expected, decay_end, scalars);
  for (auto const* moments : {&expected.m, &expected.v}) {
    auto const zeros = std::count(moments->begin(), moments->end(), 0.0f);
    CHECK((count / 20 < zeros && zeros < count * 19 / 20)); // both are tried
  }
  for (HostTarget const target : host_targets()) {
    AsHostTarget const as(target);
    CAPTURE(name_of(target));
    State state = start;
    std::vector<float> parameter(count);
    adamw_step(HostLane(), part(state, parameter, 0, count, decay_end), scalars);
    CHECK(same_bits(state.m, expected.m));
    CHECK(same_bits(state.v, expected.v));
    CHECK(same_bits(state.master, expected.master));
  }
}

TEST_CASE("rows without a gradient end with moments of zero, and never hold a subnormal") { // CASES 50
  constexpr std::int64_t few = 1000;
  AdamWScalars const scalars(OptimizerConfig(), 1e-3, 100, 1.0);
  for (HostTarget const target : host_targets()) {
    AsHostTarget const as(target);
    CAPTURE(name_of(target));
    State state = random_state(few);
    std::fill(state.gradient.begin(), state.gradient.end(), 0.0f);
    std::vector<float> parameter(few);
    std::int64_t subnormals = 0;
    for (int update = 0; update < 3000; ++update) {
      adamw_step(HostLane(), part(state, parameter, 0, few, 0), scalars);
      subnormals += std::count_if(state.m.begin(), state.m.end(), is_subnormal);
      subnormals += std::count_if(state.v.begin(), state.v.end(), is_subnormal);
    }
    CHECK(subnormals == 0);
    CHECK(same_bits(state.m, std::vector<float>(few)));
    CHECK(same_bits(state.v, std::vector<float>(few)));
  }
}
