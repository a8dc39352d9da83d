// Kernels on flat arrays, in device memory and in the host's.
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
double rounded(double value) {
  return static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(value))));
}

template <class T>
std::vector<T> as(Numbers const& numbers) {
  std::vector<T> values;
  for (double const number : numbers) values.push_back(static_cast<T>(static_cast<float>(number)));
  return values;
}

template <class T>
Numbers numbers_of(std::vector<T> const& values) {
  Numbers numbers;
  for (T const value : values) numbers.push_back(static_cast<float>(value));
  return numbers;
}

/// An array in the memory of a lane.
template <class AnyLane, class T>
class Array {
public:
  explicit Array(std::vector<T> const& values) : device_(values) {}
  T* data() const { return device_.data(); }
  std::vector<T> get() const { return device_.get(); }

private:
  DeviceArray<T> device_;
};
template <class T>
class Array<HostLane, T> {
public:
  explicit Array(std::vector<T> const& values) : host_(values) {}
  T* data() { return host_.data(); }
  std::vector<T> const& get() const { return host_; }

private:
  std::vector<T> host_;
};

/// The first that is Inf or NaN among numbers that are looked at in pieces, the last one first; none: past the end.
template <class AnyLane, class T>
std::int64_t first_non_finite(Numbers const& numbers, std::vector<std::int64_t> cuts) {
  auto const n = std::ssize(numbers);
  Array<AnyLane, T> x(as<T>(numbers));
  Array<AnyLane, std::int64_t> first(std::vector<std::int64_t>{n});
  cuts.push_back(n);
  for (std::size_t c = cuts.size(); c-- > 0;) {
    std::int64_t const begin = c > 0 ? cuts[c - 1] : 0;
    find_non_finite(AnyLane(), first.data(), x.data() + begin, cuts[c] - begin, begin);
  }
  return first.get()[0];
}

} // namespace

TEMPLATE_TEST_CASE("Conversion rounds to nearest and back exactly", "", Lane, HostLane) {
  for (std::int64_t n : lengths) {
    Array<TestType, float> x(as<float>(normal_numbers(n, 3)));
    Array<TestType, float> back(std::vector<float>(static_cast<std::size_t>(n)));
    Array<TestType, bf16> small(std::vector<bf16>(static_cast<std::size_t>(n)));
    convert(TestType(), small.data(), x.data(), n);
    convert(TestType(), back.data(), small.data(), n);
    Numbers expected = numbers_of(x.get());
    for (double& value : expected) value = rounded<bf16>(value);
    CHECK(numbers_of(small.get()) == expected);
    CHECK(numbers_of(back.get()) == expected);
  }
}

TEMPLATE_TEST_CASE("Accumulation adds in fp32 and rounds once", "", Lane, HostLane) {
  for (std::int64_t n : lengths) {
    Array<TestType, float> x(as<float>(normal_numbers(n, 6)));
    Array<TestType, bf16> sum(as<bf16>(normal_numbers(n, 7)));
    Numbers expected = numbers_of(sum.get());
    Numbers const addend = numbers_of(x.get());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = rounded<bf16>(static_cast<double>(static_cast<float>(expected[i]) + static_cast<float>(addend[i])));
    }
    accumulate(TestType(), sum.data(), x.data(), n);
    CHECK(numbers_of(sum.get()) == expected);
  }
}

TEMPLATE_TEST_CASE("Arrays may begin anywhere, and nothing beside them changes", "", Lane, HostLane) {
  std::int64_t const n = 100;
  for (std::int64_t const to : {0, 1, 4, 8}) {
    for (std::int64_t const from : {0, 1, 4, 8}) {
      Array<TestType, float> x(as<float>(normal_numbers(from + n, 8)));
      Array<TestType, bf16> y(as<bf16>(normal_numbers(to + n + 3, 9)));
      Numbers expected = numbers_of(y.get());
      Numbers const source = numbers_of(x.get());
      for (std::int64_t i = 0; i < n; ++i) {
        expected[to + i] = 2 * rounded<bf16>(source[from + i]);
      }
      convert(TestType(), y.data() + to, x.data() + from, n);
      accumulate(TestType(), y.data() + to, y.data() + to, n);
      INFO("to element " << to << " from element " << from);
      CHECK(numbers_of(y.get()) == expected);
    }
  }
}

TEMPLATE_TEST_CASE("The first Inf or NaN is found, wherever it is and however the array is cut", "", Lane, HostLane) {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const inf = std::numeric_limits<double>::infinity();
  auto const found = [](Numbers const& numbers) {
    auto const n = std::ssize(numbers);
    std::int64_t const whole = first_non_finite<TestType, float>(numbers, {});
    CHECK(first_non_finite<TestType, bf16>(numbers, {n / 3, n / 3, n - n / 4}) == whole);
    return whole;
  };
  for (std::int64_t n : lengths) {
    CHECK(found(normal_numbers(n, 5)) == n);
    for (double bad : {nan, inf, -inf}) {
      for (std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        if (at < 0 || at >= n) continue;
        Numbers numbers(static_cast<std::size_t>(n), 1.0);
        std::fill(numbers.begin() + at, numbers.end(), bad);
        CHECK(found(numbers) == at);
      }
    }
  }
}
