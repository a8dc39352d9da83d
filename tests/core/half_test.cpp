#include "support/catch.hpp"

#include "core/half.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace {

using kozero::bf16;

bf16 of_bits(std::uint32_t bits) { return std::bit_cast<bf16>(static_cast<std::uint16_t>(bits)); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint16_t rounded(float value) { return bf16(value).bits(); }

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
