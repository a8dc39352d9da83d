#include "support/catch.hpp"

#include "kernels/column_sum.hpp"
#include "kernels/row_reduce.hpp"
#include "support/matrices.hpp"

#include <algorithm>
#include <cmath>

namespace {

using namespace kozero;
using namespace kozero::test;

struct RowResults {
  Numbers sum, packed, first, second, top, packed_top;
};

template <class T>
RowResults reduce_rows(Matrix<T> const& matrix, std::int64_t n) {
  constexpr int k = pack_size<T>;
  Vector<float> const sum(n), packed(n), first(n), second(n), top(n), packed_top(n);
  Mat<T> const x = matrix;
  Vec<float> const s = sum, p = packed, a = first, b = second, t = top, u = packed_top;
  std::int64_t const width = cols(x);
  Packs const packs = packs_of<k>(x);
  for_each_row(
      Lane(), "test", n, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        float const whole = row_sum(team, width, [&](std::int64_t i) { return x(row, i); });
        float const in_packs = pack_sum<k>(team, width, packs, [&](auto at) { return load(x, row, at); });
        SumPair const pair = pack_sum2<k>(
            team, width, packs, [&](auto at) { return load(x, row, at); },
            [&](auto at) { return map([](float value) { return value * value; }, load(x, row, at)); });
        float const largest = row_max(team, width, [&](std::int64_t i) { return x(row, i); });
        float const largest_in_packs = pack_max<k>(team, width, packs, [&](auto at) { return load(x, row, at); });
        row_once(team, [&] {
          s(row) = whole;
          p(row) = in_packs;
          a(row) = pair.first;
          b(row) = pair.second;
          t(row) = largest;
          u(row) = largest_in_packs;
        });
      });
  return {sum.get(), packed.get(), first.get(), second.get(), top.get(), packed_top.get()};
}

/// x[i] += 1 + i / 4, which bf16 rounds.
template <class T>
struct Increment {
  Vec<T> x;
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<k> at) const {
    float const first = 1.0f + 0.25f * static_cast<float>(at.begin);
    Floats<k> values = load(x, at);
    for (int j = 0; j < k; ++j) values.at[j] += first + 0.25f * static_cast<float>(j);
    store(x, at, values);
  }
};

/// What Increment makes of `n` zeros that begin `offset` elements into memory.
template <class T>
Numbers increments(std::int64_t n, std::int64_t offset) {
  constexpr int k = pack_size<T>;
  Matrix<T> const memory(1, offset + n, 0, Numbers(static_cast<std::size_t>(offset + n), 0.0));
  Vec<T> const x = memory.view().flat().part(offset, offset + n);
  for_each_element<k>(Lane(), "test", n, packs_of<k>(x), Increment<T>{x});
  Numbers const all = memory.get();
  CHECK(std::all_of(all.begin(), all.begin() + offset, [](double value) { return value == 0.0; }));
  return {all.begin() + offset, all.end()};
}

template <class T>
void check_increments(std::int64_t n) {
  Numbers expected;
  for (std::int64_t i = 0; i < n; ++i) {
    expected.push_back(static_cast<float>(static_cast<T>(1.0f + 0.25f * static_cast<float>(i))));
  }
  INFO(n << " elements");
  CHECK(increments<T>(n, 0) == expected);
  CHECK(increments<T>(n, 1) == expected);
}

/// Column sums of a matrix whose rows are `padding` longer than it is wide, added to numbers.
template <class T>
Numbers column_sums(std::int64_t n, std::int64_t width, std::int64_t padding, Numbers const& numbers,
                    Numbers const& before) {
  constexpr int k = pack_size<T>;
  Matrix<T> const matrix(n, width, padding, numbers);
  Vector<float> const total(before);
  Vector<float> const scratch(column_sum_scratch(n, width));
  add_column_sums<k>(Lane(), "test", total.view(), scratch.view(), n, packs_of<k>(matrix.view()),
                     Elements<T>{matrix.view()});
  return total.get();
}

template <class T>
void check_column_sums(std::int64_t n, std::int64_t width) {
  Numbers const numbers = normal_numbers(n * width, 7);
  Numbers const before = normal_numbers(width, 8);
  Numbers expected = Vector<float>(before).get();
  Numbers sizes(static_cast<std::size_t>(width), 0.0); // of what is added: sums near zero are off by as much as others
  Numbers const values = Matrix<T>(n, width, 0, numbers).get();
  for (std::int64_t i = 0; i < n * width; ++i) {
    expected[i % width] += values[i];
    sizes[i % width] += std::fabs(values[i]);
  }
  INFO(n << " rows of " << width);
  Numbers const got = column_sums<T>(n, width, 0, numbers, before);
  for (std::int64_t c = 0; c < width; ++c) {
    CHECK(std::fabs(got[c] - expected[c]) <= 5e-7 * (sizes[c] + std::fabs(before[c])));
  }
  CHECK(column_sums<T>(n, width, 1, numbers, before) == got); // no packs
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
    CHECK(relative_error(result.packed, sum) < 1e-6);
    CHECK(relative_error(result.first, sum) < 1e-6);
    CHECK(relative_error(result.second, squares) < 1e-6);
    CHECK(result.top == top);
    CHECK(result.packed_top == top);
  }
}

TEST_CASE("The maximum of nothing is -inf, and no rows are no work") {
  auto const none = reduce_rows(Matrix<float>(3, 0), 3);
  CHECK(none.top == Numbers(3, -std::numeric_limits<double>::infinity()));
  CHECK(none.packed_top == none.top);
  CHECK(none.sum == Numbers(3, 0.0));
  CHECK(reduce_rows(Matrix<float>(0, 7), 0).sum.empty());
}

TEMPLATE_TEST_CASE("Sums over rows have the same bits where packs are whole and where they are not", "", float, bf16,
                   fp16) {
  std::int64_t const n = 3;
  for (std::int64_t width : {4, 8, 12, 20, 24, 64, 130, 1000, 1001}) {
    Numbers const numbers = normal_numbers(n * width, 3);
    auto const dense = reduce_rows(Matrix<TestType>(n, width, 0, numbers), n);
    auto const padded = reduce_rows(Matrix<TestType>(n, width, 1, numbers), n);
    INFO("width " << width);
    CHECK(dense.packed == padded.packed);
    CHECK(dense.packed_top == dense.top);
    CHECK(dense.first == padded.first);
    CHECK(dense.second == padded.second);
  }
}

TEST_CASE("for_each_element visits each element once, wherever memory begins") {
  for (std::int64_t n : {0, 1, 4, 7, 8, 9, 4095, 4096, 4097, 10000}) {
    check_increments<float>(n);
    check_increments<bf16>(n);
    check_increments<fp16>(n);
  }
}

TEST_CASE("Column sums are added to what is there") {
  for (std::int64_t n : {0, 1, 15, 64, 127, 128, 129, 300}) {
    for (std::int64_t width : {1, 3, 8, 21, 64, 128, 130, 136, 300}) {
      check_column_sums<float>(n, width);
      check_column_sums<bf16>(n, width);
    }
  }
  check_column_sums<fp16>(33000, 16); // more than 128 rows in a slice
}
