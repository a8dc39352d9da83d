#pragma once
// Elementary functions without branches or calls, so that compilers vectorise the loops they stand in. Accurate to
// about 2 units in the last place; the same bits on every host, as all fma are explicit.

#include "core/float_bits.hpp"
#include "core/kokkos.hpp"

#include <cstdint>

namespace kozero {

namespace detail {

KOKKOS_FORCEINLINE_FUNCTION float power_of_two(std::int32_t exponent) {
  return float_of_bits(static_cast<std::uint32_t>(exponent + 127) << 23);
}

/// x = exponent · ln 2 + rest with |rest| ≤ ln 2 / 2, and exp(rest) - 1. For |x| < 2^21.
struct ExpParts {
  std::int32_t exponent;
  float minus_one;
};

// Cody and Waite's reduction by two parts of ln 2, the coefficients of Cephes' expf (S. Moshier).
KOKKOS_FORCEINLINE_FUNCTION ExpParts exp_parts(float x) {
  constexpr float magic = 12582912.0f; // 1.5 · 2^23: adding it rounds to an integer, which is then in the low bits
  float const shifted = math::fma(x, 1.44269504088896341f, magic);
  float const n = shifted - magic;
  float rest = math::fma(n, -0.693359375f, x);
  rest = math::fma(n, 2.12194440e-4f, rest);
  float p = 1.9875691500e-4f;
  p = math::fma(p, rest, 1.3981999507e-3f);
  p = math::fma(p, rest, 8.3334519073e-3f);
  p = math::fma(p, rest, 4.1665795894e-2f);
  p = math::fma(p, rest, 1.6666665459e-1f);
  p = math::fma(p, rest, 5.0000001201e-1f);
  p = math::fma(p, rest * rest, rest);
  return {static_cast<std::int32_t>(bits_of_float(shifted) - bits_of_float(magic)), p};
}

} // namespace detail

/// e^x. 0 for -inf, subnormals where they are due, inf above 88.73, NaN for NaN.
KOKKOS_FORCEINLINE_FUNCTION float fast_exp(float x) {
  x = x > 89.0f ? 89.0f : x; // written so that NaN passes
  x = x < -104.0f ? -104.0f : x;
  detail::ExpParts const parts = detail::exp_parts(x);
  // Two factors, as 2^128 and 2^-150 are no floats.
  std::int32_t const half = parts.exponent >> 1;
  return (parts.minus_one + 1.0f) * detail::power_of_two(half) * detail::power_of_two(parts.exponent - half);
}

} // namespace kozero
