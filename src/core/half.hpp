#pragma once
// The 16-bit types: always 16 bits, on every build. They only store; all arithmetic is done in float. From float they
// round to nearest even, NaN stays NaN (and quiet), and what is too large becomes infinite. The conversions are
// integer arithmetic and selects, without branches and without subnormal floats, so that host loops vectorise for every
// instruction set, to the same bits.

#include "core/float_bits.hpp"
#include "core/kokkos.hpp"

#include <cstdint>
#include <type_traits>

namespace kozero {

/// bfloat16: 8 bits of exponent, 8 of significand; the range of float.
class bf16 {
public:
  bf16() = default;
  KOKKOS_FORCEINLINE_FUNCTION explicit(false) bf16(float value) : bits_(round_to_bits(value)) {}
  KOKKOS_FORCEINLINE_FUNCTION explicit(false) operator float() const {
    return detail::float_of_bits(static_cast<std::uint32_t>(bits_) << 16);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::uint16_t bits() const { return bits_; }

private:
  KOKKOS_FORCEINLINE_FUNCTION static std::uint16_t round_to_bits(float value) {
    std::uint32_t const word = detail::bits_of_float(value);
    std::uint32_t const rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
    std::uint32_t const quiet_nan = (word >> 16) | 0x0040u;
    bool const is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    return static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded);
  }
  std::uint16_t bits_;
};
static_assert(sizeof(bf16) == 2);

/// IEEE 754 binary16: 5 bits of exponent, 11 of significand. The largest is 65504, and floats from 65520 on become
/// infinite; normal from 2^-14 = 6.1e-5 on, the smallest subnormal is 2^-24 = 6.0e-8.
class fp16 {
public:
  fp16() = default;
  KOKKOS_FORCEINLINE_FUNCTION explicit(false) fp16(float value) : bits_(round_to_bits(value)) {}
  KOKKOS_FORCEINLINE_FUNCTION explicit(false) operator float() const {
    // Exponent and fraction at their places in a float, where the exponent lacks the difference of the two biases:
    // twice for infinity and NaN, to get from the largest of one type to that of the other.
    std::uint32_t const magnitude = (bits_ & 0x7fffu) << 13;
    std::uint32_t const exponent = magnitude & (0x7c00u << 13);
    std::uint32_t const beyond = exponent == (0x7c00u << 13) ? bias_difference : 0u;
    // A subnormal, and zero, is its fraction above 2^-14, less 2^-14.
    std::uint32_t const above = exponent == 0u ? 1u << 23 : 0u;
    std::uint32_t const less = exponent == 0u ? smallest_normal : 0u;
    float const value =
        detail::float_of_bits(magnitude + bias_difference + beyond + above) - detail::float_of_bits(less);
    std::uint32_t const sign = (bits_ & 0x8000u) << 16;
    return detail::float_of_bits(detail::bits_of_float(value) | sign);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::uint16_t bits() const { return bits_; }

private:
  static constexpr std::uint32_t bias_difference = (127u - 15u) << 23;
  static constexpr std::uint32_t smallest_normal = (127u - 14u) << 23; // as a float

  KOKKOS_FORCEINLINE_FUNCTION static std::uint16_t round_to_bits(float value) {
    std::uint32_t const word = detail::bits_of_float(value);
    std::uint32_t const magnitude = word & 0x7fffffffu;
    // A carry out of the fraction moves the exponent, as it should. All that gets past the largest is bounded.
    std::uint32_t const rounded = (magnitude + 0x0fffu + ((magnitude >> 13) & 1u) - bias_difference) >> 13;
    std::uint32_t const largest = 0x7c00u | (is_less(0x7f800000u, magnitude) ? 0x0200u : 0u); // infinity or NaN
    std::uint32_t const normal = is_less(rounded, largest) ? rounded : largest;
    // Floats in [0.5, 1) are multiples of 2^-24, as fp16's subnormals are: this addition is their rounding.
    std::uint32_t const subnormal =
        detail::bits_of_float(detail::float_of_bits(magnitude) + 0.5f) - detail::bits_of_float(0.5f);
    std::uint32_t const bits = is_less(magnitude, smallest_normal) ? subnormal : normal;
    return static_cast<std::uint16_t>(bits | ((word >> 16) & 0x8000u));
  }
  // Of numbers below 2^31. SSE2 and AVX2 compare signed integers only.
  KOKKOS_FORCEINLINE_FUNCTION static bool is_less(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
  }
  std::uint16_t bits_;
};
static_assert(sizeof(fp16) == 2);

/// Whether T is one of the two.
template <class T>
inline constexpr bool is_half = std::is_same_v<T, bf16> || std::is_same_v<T, fp16>;

} // namespace kozero
