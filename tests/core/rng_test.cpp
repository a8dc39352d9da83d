#include "support/catch.hpp"

#include "core/rng.hpp"

#include <algorithm>
#include <cmath>
#include <set>

using namespace kozero;

// From kat_vectors of Random123, the authors' own code.
TEST_CASE("Philox4x32-10 gives its published numbers") {
  CHECK(philox4x32({0, 0, 0, 0}, 0, 0) == Philox4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  std::uint32_t const ones = 0xffffffff;
  CHECK(philox4x32({ones, ones, ones, ones}, ones, ones) == Philox4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Philox4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

// doc/data-order.md states these, from a Python program of its own.
TEST_CASE("The numbers of a name do not change from one version of the program to the next") {
  CHECK(random_bits({1337, RngPurpose::shuffle, 0, 0}, 0) == Philox4{1699201236, 3793316210, 3509191552, 1484016382});
  auto const normal = [](std::uint32_t stream, std::uint64_t number) {
    return random_normal({1337, RngPurpose::initialise, 0, stream}, number);
  };
  CHECK(std::fabs(normal(0, 0) - 0.5340263348298357) < 1e-15); // log and cos are the C library's
  CHECK(std::fabs(normal(0, 1) - 1.7376878204196249) < 1e-15);
  CHECK(std::fabs(normal(4, 0) - 0.751934175473703) < 1e-15);
}

TEST_CASE("Every part of a key, and the index to its 48th bit, makes other numbers") {
  RngKey const key{5, RngPurpose::initialise, 6, 7};
  std::set<Philox4> const seen{
      random_bits(key, 0),
      random_bits(key, 1),
      random_bits(key, std::uint64_t{1} << 32),
      random_bits(key, std::uint64_t{1} << 47),
      random_bits({4, RngPurpose::initialise, 6, 7}, 0),
      random_bits({5 + (std::uint64_t{1} << 32), RngPurpose::initialise, 6, 7}, 0),
      random_bits({5, RngPurpose::shuffle, 6, 7}, 0),
      random_bits({5, RngPurpose::initialise, 7, 7}, 0),
      random_bits({5, RngPurpose::initialise, 6, 6}, 0),
  };
  CHECK(seen.size() == 9);
}

TEST_CASE("Uniform numbers have the moments of a uniform distribution") {
  int const n = 100000;
  double mean = 0, square = 0, least = 1, largest = 0;
  for (int i = 0; i < n; ++i) {
    double const u = random_uniform({1}, static_cast<std::uint64_t>(i));
    mean += u / n;
    square += u * u / n;
    least = std::min(least, u);
    largest = std::max(largest, u);
  }
  CHECK(std::fabs(mean - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::fabs(square - mean * mean - 1.0 / 12) < 0.001);
  CHECK(least > 0);
  CHECK(least < 1e-3);
  CHECK(largest < 1);
  CHECK(largest > 1 - 1e-3);
}

TEST_CASE("Normal numbers have the moments of a normal distribution") {
  int const n = 100000;
  double moment[5] = {};
  for (int i = 0; i < n; ++i) {
    double const x = random_normal({2}, static_cast<std::uint64_t>(i));
    for (int k = 1; k <= 4; ++k) moment[k] += std::pow(x, k) / n;
  }
  // Five standard deviations of each moment's estimate.
  CHECK(std::fabs(moment[1]) < 5 * std::sqrt(1.0 / n));
  CHECK(std::fabs(moment[2] - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::fabs(moment[3]) < 5 * std::sqrt(15.0 / n));
  CHECK(std::fabs(moment[4] - 3) < 5 * std::sqrt(96.0 / n));
}
