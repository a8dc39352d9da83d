#pragma once
// How kernels work on the rows of a matrix: one row a team. On a host a team is one thread and its loops over the row
// vectorise; on an accelerator the threads of a team share the row. Sums have a shape that depends on the length of the
// row alone (and on the accelerator's team size), never on the number of host threads.
//
//     for_each_row(lane, "kozero::softmax", n, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
//       float const top = row_max(team, width, [&](std::int64_t i) { return x(row, i); });
//       float const sum = row_sum(team, width, [&](std::int64_t i) { return fast_exp(x(row, i) - top); });
//       row_loop(team, width, [&](std::int64_t i) { x(row, i) = fast_exp(x(row, i) - top) / sum; });
//     });
//
// A row_loop may overwrite what it reads only at the index it is given.

#include "core/host_simd.hpp"
#include "core/launch.hpp"

#include <cstdint>

namespace kozero {

/// Partial sums of a row on a host: element i goes to part i mod row_parts, then a binary tree.
inline constexpr int row_parts = 64;

struct SumPair {
  float first = 0;
  float second = 0;
};

namespace detail {

template <class Body>
struct RowBody {
  Body body;
  KOKKOS_FUNCTION void operator()(RowTeam const& team, std::int64_t row) const {
#if KOZERO_ON_HOST && !KOZERO_HAS_ACCELERATOR
    host_simd([team, row, body = body] { body(team, row); });
#else
    body(team, row);
#endif
  }
};

} // namespace detail

/// Runs body(team, row) for rows 0 … n-1. Each team has so many bytes of scratch memory.
template <class Body>
void for_each_row(Lane const& lane, char const* label, std::int64_t n, std::int64_t scratch_bytes, Body const& body) {
  launch(lane, label, Teams{n, scratch_bytes}, detail::RowBody<Body>{body});
}
template <class Body>
void for_each_row(Lane const& lane, char const* label, std::int64_t n, Body const& body) {
  for_each_row(lane, label, n, 0, body);
}

/// Elements of a vector that a team takes at a time in for_each_element.
inline constexpr std::int64_t element_chunk = 4096;

namespace detail {

template <class Combine>
KOKKOS_FORCEINLINE_FUNCTION float fold_parts(float* part, Combine const& combine) {
  for (int step = row_parts / 2; step > 0; step /= 2) {
    for (int j = 0; j < step; ++j) part[j] = combine(part[j], part[j + step]);
  }
  return part[0];
}

template <class Term, class Combine>
KOKKOS_FORCEINLINE_FUNCTION float host_reduce(std::int64_t n, Term const& term, float neutral, Combine const& combine) {
  float part[row_parts];
  for (int j = 0; j < row_parts; ++j) part[j] = neutral;
  std::int64_t i = 0;
  for (; i + row_parts <= n; i += row_parts) {
    for (int j = 0; j < row_parts; ++j) part[j] = combine(part[j], term(i + j));
  }
  int const left = static_cast<int>(n - i);
  for (int j = 0; j < left; ++j) part[j] = combine(part[j], term(i + j));
  return fold_parts(part, combine);
}

} // namespace detail

/// body(i) for i = 0 … n-1, in any order. On an accelerator it ends with a barrier of the team.
template <class Body>
KOKKOS_FORCEINLINE_FUNCTION void row_loop([[maybe_unused]] RowTeam const& team, std::int64_t n, Body const& body) {
#if KOZERO_ON_HOST
  KOZERO_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) body(i);
#else
  team.loop(n, body);
  team.barrier();
#endif
}

/// Runs body(i) for i = 0 … n-1, as rows of element_chunk.
template <class Body>
void for_each_element(Lane const& lane, char const* label, std::int64_t n, Body const& body) {
  for_each_row(
      lane, label, (n + element_chunk - 1) / element_chunk, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t chunk) {
        std::int64_t const begin = chunk * element_chunk;
        std::int64_t const count = n - begin < element_chunk ? n - begin : element_chunk;
        row_loop(team, count, [&](std::int64_t i) { body(begin + i); });
      });
}

/// body(), once a team.
template <class Body>
KOKKOS_FORCEINLINE_FUNCTION void row_once([[maybe_unused]] RowTeam const& team, Body const& body) {
#if KOZERO_ON_HOST
  body();
#else
  team.once(body);
#endif
}

/// Σ term(i), i = 0 … n-1, in fp32. All threads of the team get it.
template <class Term>
KOKKOS_FORCEINLINE_FUNCTION float row_sum([[maybe_unused]] RowTeam const& team, std::int64_t n, Term const& term) {
#if KOZERO_ON_HOST
  return detail::host_reduce(n, term, 0.0f, [](float a, float b) { return a + b; });
#else
  return team.sum(n, term);
#endif
}

/// Σ first(i) and Σ second(i) in one pass over the row.
template <class First, class Second>
KOKKOS_FORCEINLINE_FUNCTION SumPair row_sum2([[maybe_unused]] RowTeam const& team, std::int64_t n, First const& first,
                                             Second const& second) {
#if KOZERO_ON_HOST
  auto const plus = [](float a, float b) { return a + b; };
  float a[row_parts] = {};
  float b[row_parts] = {};
  std::int64_t i = 0;
  for (; i + row_parts <= n; i += row_parts) {
    for (int j = 0; j < row_parts; ++j) {
      a[j] += first(i + j);
      b[j] += second(i + j);
    }
  }
  int const left = static_cast<int>(n - i);
  for (int j = 0; j < left; ++j) {
    a[j] += first(i + j);
    b[j] += second(i + j);
  }
  return {detail::fold_parts(a, plus), detail::fold_parts(b, plus)};
#else
  return {row_sum(team, n, first), row_sum(team, n, second)};
#endif
}

/// max term(i), -inf if there is none. NaN terms are passed over.
template <class Term>
KOKKOS_FORCEINLINE_FUNCTION float row_max([[maybe_unused]] RowTeam const& team, std::int64_t n, Term const& term) {
#if KOZERO_ON_HOST
  return detail::host_reduce(n, term, -__builtin_huge_valf(), [](float a, float b) { return a < b ? b : a; });
#else
  return team.max(n, term);
#endif
}

} // namespace kozero
