#include "support/catch.hpp"

#include "core/half.hpp"
#include "core/host_simd.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace {

using kozero::bf16;
using kozero::fp16;

bf16 of_bits(std::uint32_t bits) { return std::bit_cast<bf16>(static_cast<std::uint16_t>(bits)); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint16_t rounded(float value) { return bf16(value).bits(); }

// What the bits of an fp16 that is not NaN are worth by IEEE 754, if the largest exponent is one like any other:
// infinity is then 65536, the number that would follow 65504.
double worth(std::uint32_t bits) {
  auto const exponent = static_cast<int>(bits >> 10 & 0x1f);
  double const fraction = bits & 0x3ff;
  double const magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

// How many of the floats with bits first … last do not round to the fp16 with these bits.
std::int64_t count_wrong(std::uint32_t first, std::uint32_t last, std::uint16_t expected) {
#ifdef KOZERO_SANITIZED
  constexpr std::int64_t step = 127; // an instrumented build takes some of them
#else
  constexpr std::int64_t step = 1;
#endif
  std::int64_t wrong = fp16(float_of(last)).bits() != expected;
  kozero::host_simd([&wrong, first, last, expected] {
    std::int32_t count = 0;
    std::int64_t const n = std::int64_t{last} - first;
    for (std::int64_t i = 0; i < n; i += step) {
      count += fp16(float_of(first + static_cast<std::uint32_t>(i))).bits() != expected;
    }
    wrong += count;
  });
  return wrong;
}

} // namespace

TEST_CASE("Every bf16 goes to float and back unchanged; NaN only gets quiet") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    float const value = static_cast<float>(of_bits(bits));
    bool const is_nan = (bits & 0x7fff) > 0x7f80;
    REQUIRE(std::isnan(value) == is_nan);
    REQUIRE(std::bit_cast<std::uint32_t>(value) >> 16 == bits);
    REQUIRE(rounded(value) == (is_nan ? bits | 0x0040 : bits));
  }
}

TEST_CASE("Rounding is to the nearest, ties to even, around every finite bf16") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7fff) >= 0x7f80) continue; // Inf and NaN have no neighbour above
    std::uint32_t const below = bits << 16;
    std::uint32_t const even = bits % 2 == 0 ? bits : bits + 1;
    REQUIRE(rounded(float_of(below + 1)) == bits);
    REQUIRE(rounded(float_of(below + 0x7fff)) == bits);
    REQUIRE(rounded(float_of(below + 0x8000)) == even);
    REQUIRE(rounded(float_of(below + 0x8001)) == bits + 1); // for the largest: infinity
    REQUIRE(rounded(float_of(below + 0xffff)) == bits + 1);
  }
}

TEST_CASE("The special values of bf16") {
  float const inf = std::numeric_limits<float>::infinity();
  CHECK(rounded(0.0f) == 0x0000);
  CHECK(rounded(-0.0f) == 0x8000);
  CHECK(rounded(1.0f) == 0x3f80);
  CHECK(rounded(inf) == 0x7f80);
  CHECK(rounded(-inf) == 0xff80);
  CHECK(rounded(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(rounded(std::numeric_limits<float>::denorm_min()) == 0x0000);
  CHECK(static_cast<float>(of_bits(0x0001)) == 0x1p-133f); // the smallest subnormal
}

TEST_CASE("NaN whose payload is in the low half alone stays NaN") {
  for (std::uint32_t bits : {0x7f800001u, 0x7f80ffffu, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
    bf16 const value(float_of(bits));
    CHECK(std::isnan(static_cast<float>(value)));
    CHECK((value.bits() & 0x0040) != 0);
    CHECK(value.bits() >> 15 == bits >> 31);
  }
}

TEST_CASE("Every fp16 goes to float exactly and back unchanged; NaN gets quiet") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto const half = std::bit_cast<fp16>(static_cast<std::uint16_t>(bits));
    float const value = static_cast<float>(half);
    std::uint32_t const magnitude = bits & 0x7fff;
    REQUIRE(std::signbit(value) == (bits >> 15 != 0));
    REQUIRE(std::isnan(value) == (magnitude > 0x7c00));
    REQUIRE(std::isinf(value) == (magnitude == 0x7c00));
    if (magnitude < 0x7c00) REQUIRE(static_cast<double>(value) == worth(bits));
    REQUIRE(fp16(value).bits() == (magnitude > 0x7c00 ? (bits & 0x8000) | 0x7e00 : bits));
  }
}

TEST_CASE("Every float goes to the nearest fp16, ties to even, 65520 and more to infinity") {
  std::uint32_t first = 0; // bits of the smallest float whose nearest is `half`
  for (std::uint32_t half = 0; half <= 0x7c00; ++half) {
    bool const even = half % 2 == 0;
    auto const tie = static_cast<float>((worth(half) + worth(half + 1)) / 2); // exact
    std::uint32_t const tie_bits = std::bit_cast<std::uint32_t>(tie);
    std::uint32_t const last = half == 0x7c00 ? 0x7f800000 : even ? tie_bits : tie_bits - 1;
    INFO("fp16 with bits " << half << ", floats with bits " << first << " to " << last);
    REQUIRE(count_wrong(first, last, static_cast<std::uint16_t>(half)) == 0);
    REQUIRE(count_wrong(first | 0x80000000, last | 0x80000000, static_cast<std::uint16_t>(half | 0x8000)) == 0);
    first = last + 1;
  }
  CHECK(first == 0x7f800001); // all but the NaN
}

TEST_CASE("Every NaN becomes the quiet fp16 of its sign") {
  CHECK(count_wrong(0x7f800001, 0x7fffffff, 0x7e00) == 0);
  CHECK(count_wrong(0xff800001, 0xffffffff, 0xfe00) == 0);
}

TEST_CASE("The special values of fp16") {
  float const inf = std::numeric_limits<float>::infinity();
  auto const bits_of = [](float value) { return fp16(value).bits(); };
  CHECK(bits_of(0.0f) == 0x0000);
  CHECK(bits_of(-0.0f) == 0x8000);
  CHECK(bits_of(1.0f) == 0x3c00);
  CHECK(bits_of(65504.0f) == 0x7bff);
  CHECK(bits_of(std::nextafter(65520.0f, 0.0f)) == 0x7bff);
  CHECK(bits_of(65520.0f) == 0x7c00);
  CHECK(bits_of(-65520.0f) == 0xfc00);
  CHECK(bits_of(std::numeric_limits<float>::max()) == 0x7c00);
  CHECK(bits_of(inf) == 0x7c00);
  CHECK(bits_of(-inf) == 0xfc00);
  CHECK(bits_of(0x1p-14f) == 0x0400);
  CHECK(bits_of(0x1p-24f) == 0x0001);
  CHECK(bits_of(0x1p-25f) == 0x0000); // a tie
  CHECK(bits_of(std::nextafter(0x1p-25f, 1.0f)) == 0x0001);
  CHECK(bits_of(std::numeric_limits<float>::denorm_min()) == 0x0000);
}
