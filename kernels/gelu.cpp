#include "kernels/gelu.hpp"

#include "kernels/math.hpp"
#include "kernels/row_reduce.hpp"

namespace kozero {

namespace {

constexpr float cubic = 0.044715f;
constexpr float sqrt_8_over_pi = 1.59576912160573071f; // twice √(2/π)

// (1 + tanh u) / 2 = 1 / (1 + e^-2u), which keeps its relative accuracy where tanh u nears -1.
KOKKOS_FORCEINLINE_FUNCTION float gate(float x) {
  float const twice_u = sqrt_8_over_pi * x * math::fma(cubic * x, x, 1.0f);
  return 1.0f / (1.0f + fast_exp(-twice_u));
}

// Past ±20 it is 1 or 0 to the last bit, while its factors overflow; a NaN stays one.
KOKKOS_FORCEINLINE_FUNCTION float derivative(float any) {
  float const x = any < -20.0f ? -20.0f : (any > 20.0f ? 20.0f : any);
  float const g = gate(x);
  float const slope = sqrt_8_over_pi * math::fma(3.0f * cubic * x, x, 1.0f); // d(2u)/dx
  return math::fma(x * slope, g * (1.0f - g), g);
}

template <class T>
struct Gelu {
  Vec<T> y;
  Vec<T const> x;
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<k> at) const {
    store(y, at, map([](float value) { return value * gate(value); }, load(x, at)));
  }
};

template <class T>
struct GeluGradient {
  Vec<T> d;
  Vec<T const> x;
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<k> at) const {
    store(d, at,
          map([](float gradient, float value) { return gradient * derivative(value); }, load(d, at), load(x, at)));
  }
};

} // namespace

template <class T>
void gelu_forward(Lane const& lane, Vec<T> y, ConstVec<T> x) {
  constexpr int k = pack_size<T>;
  for_each_element<k>(lane, "kozero::gelu::forward", rows(y), packs_of<k>(y, x), Gelu<T>{y, x});
}

template <class T>
void gelu_backward(Lane const& lane, Vec<T> d, ConstVec<T> x) {
  constexpr int k = pack_size<T>;
  for_each_element<k>(lane, "kozero::gelu::backward", rows(d), packs_of<k>(d, x), GeluGradient<T>{d, x});
}

template void gelu_forward(Lane const&, Vec<float>, ConstVec<float>);
template void gelu_forward(Lane const&, Vec<bf16>, ConstVec<bf16>);
template void gelu_forward(Lane const&, Vec<fp16>, ConstVec<fp16>);
template void gelu_backward(Lane const&, Vec<float>, ConstVec<float>);
template void gelu_backward(Lane const&, Vec<bf16>, ConstVec<bf16>);
template void gelu_backward(Lane const&, Vec<fp16>, ConstVec<fp16>);

} // namespace kozero
