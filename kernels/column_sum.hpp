#pragma once
// Sums over the rows of a matrix, for the gradients of biases and norms: no atomics, and a shape of the sum that
// depends on the number of rows alone.

#include "core/views.hpp"
#include "kernels/row_reduce.hpp"

namespace kozero {

namespace detail {

inline constexpr std::int64_t column_chunk = 64; // columns a team takes
inline constexpr std::int64_t row_block = 64;    // rows that are summed before they join the total, on a host
inline constexpr int row_slices = 16;            // rows r, r + 16, … are summed apart, on an accelerator
inline constexpr std::int64_t slice_bytes = row_slices * column_chunk * static_cast<std::int64_t>(sizeof(float));

template <class Term>
KOKKOS_FORCEINLINE_FUNCTION void add_columns_on_host(Vec<float> const& sum, std::int64_t n, std::int64_t column,
                                                     std::int64_t count, Term const& term) {
  float total[column_chunk] = {};
  for (std::int64_t block = 0; block < n; block += row_block) {
    std::int64_t const end = n - block < row_block ? n : block + row_block;
    float part[column_chunk] = {};
    for (std::int64_t row = block; row < end; ++row) {
      for (std::int64_t j = 0; j < count; ++j) part[j] += term(row, column + j);
    }
    for (std::int64_t j = 0; j < count; ++j) total[j] += part[j];
  }
  for (std::int64_t j = 0; j < count; ++j) sum(column + j) += total[j];
}

template <class Term>
KOKKOS_FORCEINLINE_FUNCTION void add_columns_by_team(RowTeam const& team, float* part, Vec<float> const& sum,
                                                     std::int64_t n, std::int64_t column, std::int64_t count,
                                                     Term const& term) {
  team.loop(row_slices * column_chunk, [&](std::int64_t index) {
    std::int64_t const j = index % column_chunk;
    float total = 0;
    if (j < count) {
      for (std::int64_t row = index / column_chunk; row < n; row += row_slices) total += term(row, column + j);
    }
    part[index] = total;
  });
  team.barrier();
  team.loop(count, [&](std::int64_t j) {
    float total = 0;
    for (int slice = 0; slice < row_slices; ++slice) total += part[slice * column_chunk + j];
    sum(column + j) += total;
  });
}

} // namespace detail

/// sum [C] += Σ term(row, column) over rows 0 … n-1.
template <class Term>
void add_column_sums(Lane const& lane, char const* label, Vec<float> sum, std::int64_t n, Term const& term) {
  std::int64_t const columns = rows(sum);
  if (n <= 0 || columns <= 0) return;
  std::int64_t const chunks = (columns + detail::column_chunk - 1) / detail::column_chunk;
  std::int64_t const scratch_bytes = runs_on_host<Lane> ? 0 : detail::slice_bytes;
  for_each_row(
      lane, label, chunks, scratch_bytes, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t chunk) {
        std::int64_t const column = chunk * detail::column_chunk;
        std::int64_t const left = columns - column;
        std::int64_t const count = left < detail::column_chunk ? left : detail::column_chunk;
#if KOZERO_ON_HOST
        static_cast<void>(team);
        detail::add_columns_on_host(sum, n, column, count, term);
#else
        float* const part = static_cast<float*>(team.scratch(detail::slice_bytes));
        detail::add_columns_by_team(team, part, sum, n, column, count, term);
#endif
      });
}

} // namespace kozero
