#pragma once
#include "core/kokkos.hpp"

#include <cstdint>

namespace kozero {

/// bfloat16: always 16 bits, on every build. float -> bf16 rounds to nearest even; NaN stays NaN (and quiet).
/// All arithmetic is done in float.
class bf16 {
public:
  bf16() = default;
  KOKKOS_FORCEINLINE_FUNCTION explicit(false) bf16(float value) : bits_(round_to_bits(value)) {}
  KOKKOS_FORCEINLINE_FUNCTION explicit(false) operator float() const {
    union {
      std::uint32_t u;
      float f;
    } word;
    word.u = static_cast<std::uint32_t>(bits_) << 16;
    return word.f;
  }
  KOKKOS_FORCEINLINE_FUNCTION std::uint16_t bits() const { return bits_; }

private:
  KOKKOS_FORCEINLINE_FUNCTION static std::uint16_t round_to_bits(float value) {
    union {
      float f;
      std::uint32_t u;
    } word;
    word.f = value;
    std::uint32_t const rounded = (word.u + 0x7fffu + ((word.u >> 16) & 1u)) >> 16;
    std::uint32_t const quiet_nan = (word.u >> 16) | 0x0040u;
    bool const is_nan = (word.u & 0x7fffffffu) > 0x7f800000u;
    return static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded);
  }
  std::uint16_t bits_;
};
static_assert(sizeof(bf16) == 2);

} // namespace kozero
