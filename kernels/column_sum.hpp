#pragma once
// Sums over the rows of a matrix, for the gradients of biases and norms: no atomics, and a shape of the sum that
// depends on the number of rows alone. On an accelerator in two stages, as columns alone are too few for its threads:
// the rows of a slice, then the slices.

#include "core/error.hpp"
#include "core/views.hpp"
#include "kernels/row_reduce.hpp"

namespace kozero {

namespace detail {

inline constexpr std::int64_t column_chunk = runs_on_host<Lane> ? 64 : 128; // columns that a team takes

// On a host.
inline constexpr std::int64_t row_block = 64; // rows that are summed before they join the total

// On an accelerator.
inline constexpr std::int64_t least_slice_rows = 128;
inline constexpr std::int64_t most_slices = 256;
inline constexpr int row_lanes = 16; // of a slice, rows r, r + 16, … are summed apart
inline constexpr std::int64_t lanes_bytes = row_lanes * column_chunk * static_cast<std::int64_t>(sizeof(float));

/// Rows that a team of the first stage sums.
inline std::int64_t slice_rows(std::int64_t n) {
  std::int64_t const even = (n + most_slices - 1) / most_slices;
  return even < least_slice_rows ? least_slice_rows : even;
}
inline std::int64_t row_slices(std::int64_t n) { return (n + slice_rows(n) - 1) / slice_rows(n); }

/// The columns of a team.
struct ColumnChunk {
  std::int64_t begin;
  std::int64_t count;
  KOKKOS_FORCEINLINE_FUNCTION ColumnChunk(std::int64_t chunk, std::int64_t columns)
      : begin(chunk * column_chunk), count(columns - begin < column_chunk ? columns - begin : column_chunk) {}
};

inline std::int64_t column_chunks(std::int64_t columns) { return (columns + column_chunk - 1) / column_chunk; }

/// sum [C] += Σ over n rows, by one thread.
template <class Term>
struct AddColumns {
  Vec<float> sum;
  std::int64_t n;
  Term term;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(RowTeam const&, std::int64_t chunk) const {
    auto const [column, count] = ColumnChunk(chunk, rows(sum));
    float total[column_chunk] = {};
    for (std::int64_t block = 0; block < n; block += row_block) {
      std::int64_t const end = n - block < row_block ? n : block + row_block;
      float part[column_chunk] = {};
      for (std::int64_t row = block; row < end; ++row) {
        for (std::int64_t j = 0; j < count; ++j) part[j] += term(row, Place<1>{column + j}).at[0];
      }
      for (std::int64_t j = 0; j < count; ++j) total[j] += part[j];
    }
    for (std::int64_t j = 0; j < count; ++j) sum(column + j) += total[j];
  }
};

/// take(column, Σ) for each column of a chunk, over rows begin … end-1.
template <int k, class Term, class Take>
KOKKOS_FORCEINLINE_FUNCTION void sum_columns_by_team(RowTeam const& team, ColumnChunk const& chunk, std::int64_t begin,
                                                     std::int64_t end, Packs packs, Term const& term,
                                                     Take const& take) {
  Vec<float> const parts(static_cast<float*>(team.scratch(lanes_bytes)), row_lanes * column_chunk);
  auto const sum_lane = [&](std::int64_t lane, auto at) { // of columns at.begin … of the chunk
    auto in_matrix = at;
    in_matrix.begin += chunk.begin;
    auto total = decltype(term(begin, at)){};
    for (std::int64_t row = begin + lane; row < end; row += row_lanes) {
      total = map([](float a, float b) { return a + b; }, total, term(row, in_matrix));
    }
    at.begin += lane * column_chunk;
    store(parts, at, total);
  };
  // Neighbouring threads take neighbouring columns.
  std::int64_t const whole = packs == Packs::whole ? chunk.count / k : 0;
  std::int64_t const rest = chunk.count - whole * k;
  team.loop(row_lanes * whole, [&](std::int64_t i) { sum_lane(i / whole, Place<k>{i % whole * k}); });
  team.loop(row_lanes * rest, [&](std::int64_t i) { sum_lane(i / rest, Place<1>{whole * k + i % rest}); });
  team.barrier();
  team.loop(chunk.count, [&](std::int64_t j) {
    float total = 0;
    for (int lane = 0; lane < row_lanes; ++lane) total += parts(lane * column_chunk + j);
    take(chunk.begin + j, total);
  });
}

/// slices [S,C] = Σ over the rows of each slice.
template <int k, class Term>
struct SumSlices {
  Mat<float> slices;
  std::int64_t n;
  std::int64_t chunks;
  std::int64_t rows_a_slice;
  Packs packs;
  Term term;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(RowTeam const& team, std::int64_t index) const {
    std::int64_t const slice = index / chunks;
    std::int64_t const begin = slice * rows_a_slice;
    std::int64_t const end = n - begin < rows_a_slice ? n : begin + rows_a_slice;
    sum_columns_by_team<k>(team, ColumnChunk(index % chunks, cols(slices)), begin, end, packs, term,
                           [&](std::int64_t column, float total) { slices(slice, column) = total; });
  }
};

/// sum [C] += Σ over slices [S,C].
struct JoinSlices {
  static constexpr int k = pack_size<float>;
  Vec<float> sum;
  Mat<float> slices;
  Packs packs;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(RowTeam const& team, std::int64_t chunk) const {
    sum_columns_by_team<k>(
        team, ColumnChunk(chunk, rows(sum)), 0, rows(slices), packs,
        [&](std::int64_t slice, auto at) { return load(slices, slice, at); },
        [&](std::int64_t column, float total) { sum(column) += total; });
  }
};

} // namespace detail

/// Floats of memory that add_column_sums needs: one of each column for every slice, none on a host.
inline std::int64_t column_sum_scratch(std::int64_t n, std::int64_t columns) {
  return runs_on_host<Lane> ? 0 : detail::row_slices(n) * columns;
}

/// The term of the plain sums of a matrix.
template <class T>
struct Elements {
  Mat<T const> x;
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION Floats<k> operator()(std::int64_t row, Place<k> at) const {
    return load(x, row, at);
  }
};

/// sum [C] += Σ of term(row, Place<k or 1>), which are Floats, over rows 0 … n-1. `packs`: of what `term` reads.
/// `scratch`: column_sum_scratch(n, C) or more, which may hold anything.
template <int k, class Term>
void add_column_sums(Lane const& lane, char const* label, Vec<float> sum, [[maybe_unused]] Vec<float> scratch,
                     std::int64_t n, [[maybe_unused]] Packs packs, Term const& term) {
  if (n <= 0) return;
  std::int64_t const chunks = detail::column_chunks(rows(sum));
  if constexpr (runs_on_host<Lane>) {
    for_each_row(lane, label, chunks, detail::AddColumns<Term>{sum, n, term});
  } else {
    KOZERO_ASSERT(rows(scratch) >= column_sum_scratch(n, rows(sum)));
    std::int64_t const slice_count = detail::row_slices(n);
    Mat<float> const slices = make_mat(scratch.data(), slice_count, rows(sum));
    for_each_row(lane, label, slice_count * chunks, detail::lanes_bytes,
                 detail::SumSlices<k, Term>{slices, n, chunks, detail::slice_rows(n), packs, term});
    for_each_row(lane, "kozero::column_sum::join", chunks, detail::lanes_bytes,
                 detail::JoinSlices{sum, slices, packs_of<pack_size<float>>(slices)});
  }
}

} // namespace kozero
