#include "support/catch.hpp"

#include "kernels/elementwise.hpp"
#include "support/matrices.hpp"

#include <algorithm>

namespace {

using namespace kozero;
using namespace kozero::test;

constexpr std::int64_t lengths[] = {0, 1, 3, 257, 4095, 4096, 4097, 3 * 4096, 50001};

template <class T>
void check_add(std::int64_t n) {
  Vector<T> const a(normal_numbers(n, 1)), b(normal_numbers(n, 2)), y(n);
  Numbers expected = a.get();
  Numbers const other = b.get();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(expected[i] + other[i]))));
  }
  add<T>(Lane(), y, a, b);
  CHECK(y.get() == expected);
  add<T>(Lane(), a, a, b);
  CHECK(a.get() == expected);
}

} // namespace

TEST_CASE("Addition rounds once, also in place") {
  for (std::int64_t n : lengths) {
    check_add<float>(n);
    check_add<bf16>(n);
  }
}

TEST_CASE("Conversion rounds to nearest and back exactly") {
  for (std::int64_t n : lengths) {
    Vector<float> const x(normal_numbers(n, 3)), back(n);
    Vector<bf16> const small(n);
    convert<bf16, float>(Lane(), small, x);
    Numbers expected = x.get();
    for (double& value : expected) value = static_cast<double>(static_cast<float>(bf16(static_cast<float>(value))));
    CHECK(small.get() == expected);
    convert<float, bf16>(Lane(), back, small);
    CHECK(back.get() == expected);
  }
}

TEST_CASE("Sums in double agree with extended precision") {
  for (std::int64_t n : lengths) {
    Vector<float> const x(normal_numbers(n, 4));
    long double total = 0, squares = 0, size = 0;
    for (double value : x.get()) {
      total += value;
      squares += static_cast<long double>(value) * value;
      size += std::fabs(value);
    }
    INFO(n << " elements");
    CHECK(std::fabs(sum(Lane(), x) - static_cast<double>(total)) <= 1e-14 * static_cast<double>(size));
    CHECK(std::fabs(sum_of_squares(Lane(), x) - static_cast<double>(squares)) <= 1e-14 * static_cast<double>(squares));
  }
}

TEST_CASE("Squares of the largest floats are finite in double") {
  Vector<float> const x(Numbers(10, 3e38));
  double const each = static_cast<double>(3e38f);
  CHECK(sum_of_squares(Lane(), x) == 10 * (each * each));
}

TEST_CASE("The first Inf or NaN is found, wherever it is") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const inf = std::numeric_limits<double>::infinity();
  for (std::int64_t n : lengths) {
    CHECK(first_non_finite(Lane(), Vector<float>(normal_numbers(n, 5))) == n);
    for (double bad : {nan, inf, -inf}) {
      for (std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        if (at < 0 || at >= n) continue;
        Numbers numbers(static_cast<std::size_t>(n), 1.0);
        std::fill(numbers.begin() + at, numbers.end(), bad);
        CHECK(first_non_finite(Lane(), Vector<float>(numbers)) == at);
      }
    }
  }
}
