// Kernels on flat arrays; device memory here, host memory where that is another (on hosts it is the same code).
#include "support/catch.hpp"

#include "kernels/flat.hpp"
#include "support/matrices.hpp"

#include <algorithm>
#include <cmath>

namespace {

using namespace kozero;
using namespace kozero::test;

constexpr std::int64_t lengths[] = {0, 1, 3, 257, 4095, 4096, 4097, 3 * 4096, 50001};

template <class T>
T* data(Vector<T> const& x) {
  return Vec<T>(x).data();
}

template <class T>
double rounded(double value) {
  return static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(value))));
}

} // namespace

TEST_CASE("Conversion rounds to nearest and back exactly") {
  for (std::int64_t n : lengths) {
    Vector<float> const x(normal_numbers(n, 3)), back(n);
    Vector<bf16> const small(n);
    convert<DeviceExec, bf16, float>(Lane(), data(small), data(x), n);
    Numbers expected = x.get();
    for (double& value : expected) value = rounded<bf16>(value);
    CHECK(small.get() == expected);
    convert<DeviceExec, float, bf16>(Lane(), data(back), data(small), n);
    CHECK(back.get() == expected);
  }
}

TEST_CASE("Accumulation adds in fp32 and rounds once") {
  for (std::int64_t n : lengths) {
    Vector<float> const x(normal_numbers(n, 6));
    Vector<bf16> const sum(normal_numbers(n, 7));
    Numbers expected = sum.get();
    Numbers const addend = x.get();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = rounded<bf16>(static_cast<double>(static_cast<float>(expected[i]) + static_cast<float>(addend[i])));
    }
    accumulate<DeviceExec, bf16, float>(Lane(), data(sum), data(x), n);
    CHECK(sum.get() == expected);
  }
}

TEST_CASE("The first Inf or NaN is found, wherever it is") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const inf = std::numeric_limits<double>::infinity();
  auto const find = [](Numbers const& numbers) {
    Vector<float> const x(numbers);
    return first_non_finite<DeviceExec, float>(Lane(), data(x), static_cast<std::int64_t>(numbers.size()));
  };
  for (std::int64_t n : lengths) {
    CHECK(find(normal_numbers(n, 5)) == n);
    for (double bad : {nan, inf, -inf}) {
      for (std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        if (at < 0 || at >= n) continue;
        Numbers numbers(static_cast<std::size_t>(n), 1.0);
        std::fill(numbers.begin() + at, numbers.end(), bad);
        CHECK(find(numbers) == at);
      }
    }
  }
}
