#include "support/catch.hpp"

#include "kernels/gelu.hpp"
#include "support/matrices.hpp"

namespace {

using namespace kozero;
using namespace kozero::test;

double gelu(double x) {
  double const pi = 3.14159265358979323846;
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / pi) * (x + 0.044715 * x * x * x)));
}

double slope(double x) {
  double const h = 1e-5;
  return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

Numbers each(Numbers const& x, double (*function)(double)) {
  Numbers y;
  for (double value : x) y.push_back(function(value));
  return y;
}

// n numbers from -12 to 12, so that both tails are in.
Numbers inputs(std::int64_t n) {
  Numbers x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(24.0 * (static_cast<double>(i) + 0.5) / static_cast<double>(n) - 12.0);
  return x;
}

template <class T>
void check(std::int64_t n) {
  Vector<T> const x(inputs(n));
  Vector<T> const y(n);
  gelu_forward<T>(Lane(), y, x);
  INFO(n << " elements");
  CHECK(relative_error(y.get(), each(x.get(), gelu)) < tolerance<T>);

  Vector<T> const d(normal_numbers(n, 1));
  Numbers expected = each(x.get(), slope);
  Numbers const before = d.get();
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= before[i];
  gelu_backward<T>(Lane(), d, x);
  CHECK(relative_error(d.get(), expected) < tolerance<T>);
}

} // namespace

TEST_CASE("GELU and its finite differences, any length") {
  for (std::int64_t n : {0, 1, 3, 33, 257, 4096, 9001}) {
    check<float>(n);
    check<bf16>(n);
    check<fp16>(n);
  }
}

TEST_CASE("GELU keeps its relative accuracy in the left tail") {
  Numbers numbers;
  for (int i = 0; i < 100; ++i) numbers.push_back(-3.0 - 0.01 * i);
  Vector<float> const x(numbers), y(100);
  gelu_forward<float>(Lane(), y, x);
  Numbers const result = y.get(), at = x.get();
  for (std::size_t i = 0; i < result.size(); ++i) CHECK(std::fabs(result[i] / gelu(at[i]) - 1.0) < 1e-5);
}

TEST_CASE("GELU of huge numbers is the number, or zero") {
  Vector<float> const x(Numbers{1e30, -1e30}), y(2);
  gelu_forward<float>(Lane(), y, x);
  CHECK(y.get() == Numbers{static_cast<double>(1e30f), 0.0});
}
