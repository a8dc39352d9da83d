#include "kernels/squares.hpp"

#include "core/host_simd.hpp"
#include "core/views.hpp"
#include "kernels/aligned_tree.hpp"

#include <type_traits>

namespace kozero {

namespace {

constexpr std::int64_t columns = square_columns;
constexpr int group_level = 4; // rows that are added in registers: 16
constexpr std::int64_t group_rows = std::int64_t{1} << group_level;

// The largest nodes that a thread adds up. A host's thread takes all columns of one, an accelerator's a single column,
// so that neighbours read neighbouring memory, and as there are many more of them, of less rows.
template <class Exec>
inline constexpr int top_level = std::is_same_v<Exec, HostExec> ? 11 : 8;
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
  double value[width];
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

/// The sums [nodes,8] of the nodes of `cut`, of an array of n elements that starts with row `first_row`.
template <class Exec, class T>
std::vector<SquareSum::Value> node_sums(BasicLane<Exec> const& lane, detail::AlignedCut const& cut,
                                        std::int64_t first_row, std::int64_t n, T const* x) {
  std::vector<SquareSum::Value> sums(static_cast<std::size_t>(cut.count()));
  double* const out = sums.data()->data();
  char const* const label = "kozero::squares";
  if constexpr (std::is_same_v<Exec, HostExec>) {
    Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>> const policy(lane.exec(), 0, cut.count());
    Kokkos::parallel_for(label, policy, [=](std::int64_t i) {
      AlignedNode const node = cut.node(i);
      std::int64_t const row = node.begin() - first_row;
      std::int64_t const level = node.level;
      host_simd([=] { node_sum<columns>(out + i * columns, row, level, 0, n, x); });
    });
    lane.fence();
  } else {
    std::int64_t const count = cut.count() * columns;
    Kokkos::View<double*, Kokkos::LayoutRight, typename Exec::memory_space> const result(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, label), static_cast<std::size_t>(count));
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(lane.exec(), 0, count),
                         ColumnSum<T>{result.data(), cut, first_row, n, x});
    Kokkos::deep_copy(lane.exec(),
                      Kokkos::View<double*, Kokkos::LayoutRight, HostMemory, Unmanaged>(out, result.extent(0)), result);
    lane.fence();
  }
  return sums;
}

} // namespace

double sum_of_columns(SquareSum::Value const& sums) { return neighbour_sum({sums.begin(), sums.end()}); }

template <class Exec, class T>
void add_squares(BasicLane<Exec> const& lane, T const* x, std::int64_t begin, std::int64_t n, SquareSum& sum) {
  if (n == 0) return;
  std::int64_t const first_row = begin / columns;
  std::int64_t const end_row = (begin + n + columns - 1) / columns;
  KOZERO_REQUIRE(begin % columns == 0 && (n % columns == 0 || end_row == sum.leaves()),
                 "squares of elements {} to {} are no whole rows (a fault of kozero); please report it", begin,
                 begin + n - 1);
  detail::AlignedCut const cut(first_row, end_row, top_level<Exec>);
  auto const sums = node_sums(lane, cut, first_row, n, x);
  for (std::size_t i = 0; i < sums.size(); ++i) sum.add(cut.node(static_cast<std::int64_t>(i)), sums[i]);
}

#define KOZERO_INSTANTIATE_SQUARES(Exec, T)                                                                            \
  template void add_squares(BasicLane<Exec> const&, T const*, std::int64_t, std::int64_t, SquareSum&);
#define KOZERO_INSTANTIATE_SQUARES_ON(Exec)                                                                            \
  KOZERO_INSTANTIATE_SQUARES(Exec, float)                                                                              \
  KOZERO_INSTANTIATE_SQUARES(Exec, bf16)                                                                               \
  KOZERO_INSTANTIATE_SQUARES(Exec, fp16)

KOZERO_INSTANTIATE_SQUARES_ON(HostExec)
#if KOZERO_HAS_ACCELERATOR
KOZERO_INSTANTIATE_SQUARES_ON(DeviceExec)
#endif

} // namespace kozero
