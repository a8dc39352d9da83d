#pragma once
// A float as its bits and back, in a form that compilers vectorise on hosts and accept in kernels.

#include "core/kokkos.hpp"

#include <cstdint>

namespace kozero::detail {

KOKKOS_FORCEINLINE_FUNCTION float float_of_bits(std::uint32_t bits) {
  union {
    std::uint32_t u;
    float f;
  } word;
  word.u = bits;
  return word.f;
}

KOKKOS_FORCEINLINE_FUNCTION std::uint32_t bits_of_float(float value) {
  union {
    float f;
    std::uint32_t u;
  } word;
  word.f = value;
  return word.u;
}

} // namespace kozero::detail
