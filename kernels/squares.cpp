#include "kernels/squares.hpp"

#include "core/host_simd.hpp"
#include "core/launch.hpp"

#include <algorithm>
#include <type_traits>

namespace kozero {

namespace {

constexpr std::int64_t columns = square_columns;
constexpr int group_level = 4; // rows that are added in registers: 16
constexpr std::int64_t group_rows = std::int64_t{1} << group_level;

// The largest nodes that a thread adds up. A host's thread takes all columns of one, an accelerator's a single column,
// so that neighbours read neighbouring memory, and as there are many more of them, of less rows.
template <class AnyLane>
inline constexpr int top_level = runs_on_host<AnyLane> ? 11 : 8;
constexpr int most_levels = 12;

template <class T>
KOKKOS_FORCEINLINE_FUNCTION double square(T x) {
  double const value = static_cast<double>(static_cast<float>(x));
  return value * value;
}

/// The tree over n rows, a power of two, of the column that starts at x.
template <std::int64_t n, class T>
KOKKOS_FORCEINLINE_FUNCTION double group_sum(T const* x) {
  if constexpr (n == 1) {
    return square(*x);
  } else {
    double const left = group_sum<n / 2>(x);
    return left + group_sum<n / 2>(x + n / 2 * columns);
  }
}

/// sums[j] of the column that starts at x[j], over the rows of a group.
template <int width, class T>
KOKKOS_FORCEINLINE_FUNCTION void group_sums(double (&sums)[width], T const* x) {
  if constexpr (width == columns &&
                !std::is_same_v<T, float>) { // long vectors of 16-bit numbers become long ones of fp32
    float converted[group_rows * columns];
    for (std::int64_t i = 0; i < group_rows * columns; ++i) converted[i] = static_cast<float>(x[i]);
    group_sums<width, float>(sums, converted);
  } else {
    for (int j = 0; j < width; ++j) sums[j] = group_sum<group_rows>(x + j);
  }
}

/// sums[j] of the column first_column + j over 2^level rows from `row` on, of an array of n elements.
template <int width, class T>
KOKKOS_FORCEINLINE_FUNCTION void node_sum(double* sums, std::int64_t row, std::int64_t level, int first_column,
                                          std::int64_t n, T const* x) {
  std::int64_t const rows = std::int64_t{1} << level;
  detail::BinaryCounter<width, most_levels> counter;
  double value[width] = {};
  for (std::int64_t at = 0; at < rows;) {
    std::int64_t const i = (row + at) * columns + first_column;
    bool const whole = rows - at >= group_rows && (row + at + group_rows) * columns <= n;
    if (whole) {
      group_sums(value, x + i);
    } else {
      for (int j = 0; j < width; ++j) value[j] = i + j < n ? square(x[i + j]) : 0.0;
    }
    counter.add(at, whole ? group_level : 0, value);
    at += whole ? group_rows : 1;
  }
  for (int j = 0; j < width; ++j) sums[j] = value[j]; // the last addition completed the node
}

/// A column of a node, on an accelerator.
template <class T>
struct ColumnSum {
  double* sums;
  detail::AlignedCut cut;
  std::int64_t first_row;
  std::int64_t n;
  T const* x;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    AlignedNode const node = cut.node(i / columns);
    node_sum<1>(sums + i, node.begin() - first_row, node.level, static_cast<int>(i % columns), n, x);
  }
};

/// All columns of a node, on a host.
template <class T>
struct RowSums {
  double* sums;
  detail::AlignedCut cut;
  std::int64_t first_row;
  std::int64_t n;
  T const* x;
  void operator()(std::int64_t i) const {
    AlignedNode const node = cut.node(i);
    host_simd([out = sums + i * columns, row = node.begin() - first_row, level = node.level, n = n, x = x] {
      node_sum<columns>(out, row, level, 0, n, x);
    });
  }
};

} // namespace

double sum_of_columns(SquareSum::Value const& sums) { return neighbour_sum(sums); }

template <class AnyLane>
SquareNodes<AnyLane>::SquareNodes(std::int64_t begin, std::int64_t n, std::int64_t block_size)
    : first_row_(begin / columns), n_(n), cut_(first_row_, (begin + n + columns - 1) / columns, top_level<AnyLane>) {
  KOZERO_REQUIRE(n == 0 || (begin % columns == 0 && (n % columns == 0 || begin + n == block_size)),
                 "squares of elements {} to {} are no whole rows (a fault of kozero); please report it", begin,
                 begin + n - 1);
}

template <class AnyLane>
std::int64_t SquareNodes<AnyLane>::most(std::int64_t n) {
  std::int64_t const rows = (n + columns - 1) / columns;
  // Whole tiles, and at either end one node of each smaller size.
  return std::min<std::int64_t>(rows, (rows >> top_level<AnyLane>)+2 * top_level<AnyLane>) * columns;
}

template <class AnyLane>
template <class T>
void SquareNodes<AnyLane>::compute(AnyLane const& lane, double* sums, T const* x) const {
  char const* const label = "kozero::squares";
  if constexpr (runs_on_host<AnyLane>) {
    launch(lane, label, Range{cut_.count()}, RowSums<T>{sums, cut_, first_row_, n_, x});
  } else {
    launch(lane, label, Range{size()}, ColumnSum<T>{sums, cut_, first_row_, n_, x});
  }
}

template <class AnyLane>
void SquareNodes<AnyLane>::add_to(SquareSum& sum, double const* sums) const {
  for (std::int64_t i = 0; i < cut_.count(); ++i) {
    SquareSum::Value value;
    std::copy_n(sums + i * columns, columns, value.begin());
    sum.add(cut_.node(i), value);
  }
}

#define KOZERO_INSTANTIATE_SQUARES(AnyLane)                                                                            \
  template class SquareNodes<AnyLane>;                                                                                 \
  template void SquareNodes<AnyLane>::compute(AnyLane const&, double*, float const*) const;                            \
  template void SquareNodes<AnyLane>::compute(AnyLane const&, double*, bf16 const*) const;                             \
  template void SquareNodes<AnyLane>::compute(AnyLane const&, double*, fp16 const*) const;

KOZERO_INSTANTIATE_SQUARES(HostLane)
KOZERO_INSTANTIATE_SQUARES(Lane)

} // namespace kozero
