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
#include "core/packs.hpp"

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

/// body(Place<k or 1>) for the elements 0 … n-1 of a row, in packs of k where they are whole and one by one otherwise,
/// as on a host. On an accelerator it ends with a barrier of the team.
template <int k, class Body>
KOKKOS_FORCEINLINE_FUNCTION void pack_loop([[maybe_unused]] RowTeam const& team, std::int64_t n,
                                           [[maybe_unused]] Packs packs, Body const& body) {
#if KOZERO_ON_HOST
  row_loop(team, n, [&](std::int64_t i) { body(Place<1>{i}); });
#else
  std::int64_t const whole = packs == Packs::whole ? n / k : 0;
  team.loop(whole, [&](std::int64_t i) { body(Place<k>{i * k}); });
  team.loop(n - whole * k, [&](std::int64_t i) { body(Place<1>{whole * k + i}); });
  team.barrier();
#endif
}

/// Runs body(Place<k or 1>) for the elements 0 … n-1 of vectors, as rows of element_chunk.
template <int k, class Body>
void for_each_element(Lane const& lane, char const* label, std::int64_t n, Packs packs, Body const& body) {
  static_assert(element_chunk % k == 0);
  for_each_row(
      lane, label, (n + element_chunk - 1) / element_chunk, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t chunk) {
        std::int64_t const begin = chunk * element_chunk;
        std::int64_t const count = n - begin < element_chunk ? n - begin : element_chunk;
        pack_loop<k>(team, count, packs, [&](auto at) {
          at.begin += begin;
          body(at);
        });
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

namespace detail {

/// The terms of one pack of a row of n, one after another: the same whether packs are whole or not.
template <int k, class Term, class Combine>
KOKKOS_FORCEINLINE_FUNCTION float fold_pack(std::int64_t pack, std::int64_t n, Packs packs, Term const& term,
                                            float neutral, Combine const& combine) {
  std::int64_t const begin = pack * k;
  std::int64_t const end = n - begin < k ? n : begin + k;
  float result = neutral;
  if (packs == Packs::whole && end - begin == k) {
    Floats<k> const terms = term(Place<k>{begin});
    for (int j = 0; j < k; ++j) result = combine(result, terms.at[j]);
  } else {
    for (std::int64_t i = begin; i < end; ++i) result = combine(result, term(Place<1>{i}).at[0]);
  }
  return result;
}

} // namespace detail

/// Σ of term(Place<k or 1>), which are Floats, over the elements 0 … n-1 of a row. Its shape is the same whether packs
/// are whole or not.
template <int k, class Term>
KOKKOS_FORCEINLINE_FUNCTION float pack_sum([[maybe_unused]] RowTeam const& team, std::int64_t n,
                                           [[maybe_unused]] Packs packs, Term const& term) {
#if KOZERO_ON_HOST
  return row_sum(team, n, [&](std::int64_t i) { return term(Place<1>{i}).at[0]; });
#else
  return team.sum((n + k - 1) / k, [&](std::int64_t pack) {
    return detail::fold_pack<k>(pack, n, packs, term, 0.0f, [](float a, float b) { return a + b; });
  });
#endif
}

/// Both sums, on a host in one pass over the row.
template <int k, class First, class Second>
KOKKOS_FORCEINLINE_FUNCTION SumPair pack_sum2([[maybe_unused]] RowTeam const& team, std::int64_t n,
                                              [[maybe_unused]] Packs packs, First const& first, Second const& second) {
#if KOZERO_ON_HOST
  auto const plus = [](float a, float b) { return a + b; };
  float a[row_parts] = {};
  float b[row_parts] = {};
  std::int64_t i = 0;
  for (; i + row_parts <= n; i += row_parts) {
    for (int j = 0; j < row_parts; ++j) {
      a[j] += first(Place<1>{i + j}).at[0];
      b[j] += second(Place<1>{i + j}).at[0];
    }
  }
  int const left = static_cast<int>(n - i);
  for (int j = 0; j < left; ++j) {
    a[j] += first(Place<1>{i + j}).at[0];
    b[j] += second(Place<1>{i + j}).at[0];
  }
  return {detail::fold_parts(a, plus), detail::fold_parts(b, plus)};
#else
  return {pack_sum<k>(team, n, packs, first), pack_sum<k>(team, n, packs, second)};
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

/// The same of term(Place<k or 1>), which are Floats.
template <int k, class Term>
KOKKOS_FORCEINLINE_FUNCTION float pack_max([[maybe_unused]] RowTeam const& team, std::int64_t n,
                                           [[maybe_unused]] Packs packs, Term const& term) {
#if KOZERO_ON_HOST
  return row_max(team, n, [&](std::int64_t i) { return term(Place<1>{i}).at[0]; });
#else
  return team.max((n + k - 1) / k, [&](std::int64_t pack) {
    return detail::fold_pack<k>(pack, n, packs, term, -__builtin_huge_valf(),
                                [](float top, float value) { return top < value ? value : top; });
  });
#endif
}

} // namespace kozero
