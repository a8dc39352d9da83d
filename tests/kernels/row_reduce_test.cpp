#include "support/catch.hpp"

#include "kernels/column_sum.hpp"
#include "kernels/row_reduce.hpp"
#include "support/matrices.hpp"

#include <algorithm>

namespace {

using namespace kozero;
using namespace kozero::test;

struct RowResults {
  Numbers sum, first, second, top;
};

RowResults reduce_rows(Matrix<float> const& matrix, std::int64_t n) {
  Vector<float> const sum(n), first(n), second(n), top(n);
  Mat<float> const x = matrix;
  Vec<float> const s = sum, a = first, b = second, t = top;
  std::int64_t const width = cols(x);
  for_each_row(
      Lane(), "test", n, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        float const whole = row_sum(team, width, [&](std::int64_t i) { return x(row, i); });
        SumPair const pair = row_sum2(
            team, width, [&](std::int64_t i) { return x(row, i); },
            [&](std::int64_t i) { return x(row, i) * x(row, i); });
        float const largest = row_max(team, width, [&](std::int64_t i) { return x(row, i); });
        row_once(team, [&] {
          s(row) = whole;
          a(row) = pair.first;
          b(row) = pair.second;
          t(row) = largest;
        });
      });
  return {sum.get(), first.get(), second.get(), top.get()};
}

} // namespace

TEST_CASE("Sums and maxima of rows of any length") {
  for (std::int64_t width : {1, 2, 3, 63, 64, 65, 127, 130, 257, 1000}) {
    std::int64_t const n = 5;
    Matrix<float> const x(n, width, 0, normal_numbers(n * width, 1));
    Numbers const values = x.get();
    Numbers sum(n), squares(n), top(n);
    for (std::int64_t row = 0; row < n; ++row) {
      auto const begin = values.begin() + row * width;
      for (auto i = begin; i != begin + width; ++i) {
        sum[row] += *i;
        squares[row] += *i * *i;
      }
      top[row] = *std::max_element(begin, begin + width);
    }
    auto const result = reduce_rows(x, n);
    INFO("width " << width);
    CHECK(relative_error(result.sum, sum) < 1e-6);
    CHECK(relative_error(result.first, sum) < 1e-6);
    CHECK(relative_error(result.second, squares) < 1e-6);
    CHECK(result.top == top);
  }
}

TEST_CASE("The maximum of nothing is -inf, and no rows are no work") {
  auto const none = reduce_rows(Matrix<float>(3, 0), 3);
  CHECK(none.top == Numbers(3, -std::numeric_limits<double>::infinity()));
  CHECK(none.sum == Numbers(3, 0.0));
  CHECK(reduce_rows(Matrix<float>(0, 7), 0).sum.empty());
}

TEST_CASE("for_each_element visits each element once") {
  for (std::int64_t n : {0, 1, 4095, 4096, 4097, 10000}) {
    Vector<float> const vector(Numbers(static_cast<std::size_t>(n), 0.0));
    Vec<float> const x = vector;
    for_each_element(
        Lane(), "test", n, KOKKOS_LAMBDA(std::int64_t i) { x(i) += 1.0f; });
    CHECK(vector.get() == Numbers(static_cast<std::size_t>(n), 1.0));
  }
}

TEST_CASE("Column sums are added to what is there") {
  for (std::int64_t n : {0, 1, 63, 64, 65, 300}) {
    for (std::int64_t width : {1, 3, 21, 64, 130}) {
      Matrix<float> const matrix(n, width, 0, normal_numbers(n * width, 7));
      Vector<float> const total(normal_numbers(width, 8));
      Numbers expected = total.get();
      Numbers const values = matrix.get();
      for (std::int64_t i = 0; i < n * width; ++i) expected[i % width] += values[i];
      Mat<float> const x = matrix;
      add_column_sums(
          Lane(), "test", total.view(), n, KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) { return x(row, c); });
      INFO(n << " rows of " << width);
      CHECK(relative_error(total.get(), expected) < 1e-6);
    }
  }
}
