#pragma once
// The pieces that attention kernels are made of. A tile has tile_lanes columns, and everything is vectorised over them:
// they are queries in the forward pass and for dq, keys for dk and dv. What is indexed by lane lies as [row][lane] and
// is called "transposed" where the matrix has its rows along the lanes. Then no inner loop needs a transpose or a sum
// across lanes.

#include "core/views.hpp"
#include "kernels/attention.hpp"
#include "kernels/gemm.hpp"
#include "kernels/row_reduce.hpp"

namespace kozero::attention {

/// Who works on a tile. An accelerator's teams have little scratch: their tiles are smaller, and what they go over
/// they read where it lies, as its caches serve threads that all read the same.
enum class TeamsOf { host, accelerator };
inline constexpr TeamsOf teams_here = runs_on_host<Lane> ? TeamsOf::host : TeamsOf::accelerator;

/// Queries and keys of a tile.
constexpr std::int64_t lanes_of(TeamsOf teams) { return teams == TeamsOf::host ? 64 : 16; }
inline constexpr std::int64_t tile_lanes = lanes_of(teams_here);

/// Rows that tile_product works on at once; row counts are padded to a multiple of it.
inline constexpr std::int64_t row_group = 8;

KOKKOS_FORCEINLINE_FUNCTION constexpr std::int64_t padded(std::int64_t width) {
  return (width + row_group - 1) / row_group * row_group;
}

/// body(row, column) for a grid, in any order.
template <class Body>
KOKKOS_FORCEINLINE_FUNCTION void grid_loop([[maybe_unused]] RowTeam const& team, std::int64_t n_rows,
                                           std::int64_t n_columns, Body const& body) {
#if KOZERO_ON_HOST
  for (std::int64_t row = 0; row < n_rows; ++row) {
    KOZERO_INDEPENDENT
    for (std::int64_t column = 0; column < n_columns; ++column) body(row, column);
  }
#else
  team.loop(n_rows * n_columns, [&](std::int64_t index) { body(index / n_columns, index % n_columns); });
  team.barrier();
#endif
}

/// body(row, lane) for all lanes of a tile; the rows of a lane come in ascending order.
template <class Body>
KOKKOS_FORCEINLINE_FUNCTION void lane_loop([[maybe_unused]] RowTeam const& team, std::int64_t n_rows,
                                           Body const& body) {
#if KOZERO_ON_HOST
  for (std::int64_t row = 0; row < n_rows; ++row) {
    KOZERO_INDEPENDENT
    for (std::int64_t lane = 0; lane < tile_lanes; ++lane) body(row, lane);
  }
#else
  team.loop(tile_lanes, [&](std::int64_t lane) {
    for (std::int64_t row = 0; row < n_rows; ++row) body(row, lane);
  });
  team.barrier();
#endif
}

/// An fp32 matrix in scratch that is read an element at a time, row_group rows side by side:
/// a(row, i) = data[row / row_group · group_stride + row mod row_group · row_stride + i · inner_stride].
template <std::int64_t inner_stride_>
struct Factor {
  static constexpr std::int64_t inner_stride = inner_stride_; // a constant, or compilers do not vectorise tile_product
  float const* data;
  std::int64_t group_stride;
  std::int64_t row_stride;
};

/// The same where it lies, in any type: a(row, i) = data[row · row_stride + i · inner_stride], and nothing beyond
/// n_rows rows and n_inner of each.
template <class T>
struct FactorInPlace {
  T const* data;
  std::int64_t row_stride;
  std::int64_t inner_stride;
  std::int64_t n_rows;
  std::int64_t n_inner;
};

/// What load_rows made of rows [row][d], as a(row, d).
KOKKOS_FORCEINLINE_FUNCTION Factor<1> by_row(float const* data, std::int64_t d) {
  return {data, row_group * padded(d), padded(d)};
}

/// What load_slabs made of rows [row][d], as a(d, row).
KOKKOS_FORCEINLINE_FUNCTION Factor<row_group> by_column(float const* data) { return {data, row_group * tile_lanes, 1}; }

/// c[row][lane] = (or +=) Σ_i a(row, i) · b[i][lane], i ascending. n_rows is a multiple of row_group, inner ≥ 1.
template <Into into, std::int64_t inner_stride>
KOKKOS_FORCEINLINE_FUNCTION void tile_product(RowTeam const&, float* c, Factor<inner_stride> const& a, float const* b,
                                              std::int64_t n_rows, std::int64_t inner) {
  // Compilers vectorise the loop over lanes with the sums of a group of rows in registers.
  std::int64_t const row_stride = a.row_stride;
  for (std::int64_t row = 0; row < n_rows; row += row_group) {
    float const* __restrict const a_group = a.data + row / row_group * a.group_stride;
    float* __restrict const c_group = c + row * tile_lanes;
    KOZERO_INDEPENDENT
    for (std::int64_t lane = 0; lane < tile_lanes; ++lane) {
      float sum[row_group];
      KOZERO_UNROLL(8)
      for (int k = 0; k < row_group; ++k) sum[k] = into == Into::accumulate ? c_group[k * tile_lanes + lane] : 0.0f;
      std::int64_t i = 0;
      do { // a loop that might run zero times would be a branch, which compilers do not vectorise here
        float const factor = b[i * tile_lanes + lane];
        float const* const a_column = a_group + i * inner_stride;
        KOZERO_UNROLL(8)
        for (int k = 0; k < row_group; ++k) sum[k] = math::fma(a_column[k * row_stride], factor, sum[k]);
      } while (++i < inner);
      KOZERO_UNROLL(8)
      for (int k = 0; k < row_group; ++k) c_group[k * tile_lanes + lane] = sum[k];
    }
  }
}

/// The same on an accelerator.
template <Into into, class T>
KOKKOS_FORCEINLINE_FUNCTION void tile_product(RowTeam const& team, float* c, FactorInPlace<T> const& a, float const* b,
                                              std::int64_t n_rows, std::int64_t inner) {
  std::int64_t const terms = inner < a.n_inner ? inner : a.n_inner;
  grid_loop(team, n_rows, tile_lanes, [&](std::int64_t row, std::int64_t lane) {
    float sum = into == Into::accumulate ? c[row * tile_lanes + lane] : 0.0f;
    if (row < a.n_rows) {
      T const* const a_row = a.data + row * a.row_stride;
      for (std::int64_t i = 0; i < terms; ++i) {
        sum = math::fma(static_cast<float>(a_row[i * a.inner_stride]), b[i * tile_lanes + lane], sum);
      }
    }
    c[row * tile_lanes + lane] = sum;
  });
}

/// Up to tile_lanes rows of one head in a matrix [N, …]; what lies beyond `count` reads as zero.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride;
  std::int64_t count;
  std::int64_t width; // D
};

/// Which tile of which head a team works on, and where that lies in the matrices.
struct TilePlace {
  std::int64_t context;    // T
  std::int64_t width;      // C
  std::int64_t d;          // D
  std::int64_t column;     // first of the head's columns
  std::int64_t window_row; // first row of the window
  std::int64_t head_entry; // first entry of the head in arrays [B·H·T]
  std::int64_t tile;

  /// Teams of one head follow each other, as they read the same keys.
  KOKKOS_FORCEINLINE_FUNCTION TilePlace(AttentionShape const& shape, std::int64_t c, std::int64_t team)
      : context(shape.context), width(c), d(c / shape.heads) {
    std::int64_t const tiles = tiles_of(shape.context);
    std::int64_t const head = team / tiles;
    tile = team % tiles;
    column = head % shape.heads * d;
    window_row = head / shape.heads * shape.context;
    head_entry = head * shape.context;
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t tiles_of(std::int64_t context) {
    return (context + tile_lanes - 1) / tile_lanes;
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t count(std::int64_t of_tile) const {
    std::int64_t const left = context - of_tile * tile_lanes;
    return left < tile_lanes ? left : tile_lanes;
  }
  /// The rows of a tile in [N, C] (part 0) or in one of the parts of [N, 3C]: 0 q, 1 k, 2 v.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION HeadRows<T> rows(Mat<T> const& matrix, std::int64_t of_tile, int part = 0) const {
    std::int64_t const row = window_row + of_tile * tile_lanes;
    return {matrix.data() + row * matrix.stride() + part * width + column, matrix.stride(), count(of_tile), d};
  }
  /// The entries of a tile in [B·H·T].
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T* entries(Vec<T> const& vector, std::int64_t of_tile) const {
    return vector.data() + head_entry + of_tile * tile_lanes;
  }
};

/// to[row][d], rows of padded(D) elements.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void load_rows(RowTeam const& team, float* to, HeadRows<T> const& from) {
  std::int64_t const stride = padded(from.width);
  grid_loop(team, from.count, from.width, [to, stride, from](std::int64_t row, std::int64_t d) {
    to[row * stride + d] = static_cast<float>(from.data[row * from.stride + d]);
  });
  grid_loop(team, from.count, stride - from.width,
            [to, stride, from](std::int64_t row, std::int64_t d) { to[row * stride + from.width + d] = 0; });
  float* const rest = to + from.count * stride;
  grid_loop(team, tile_lanes - from.count, stride,
            [rest, stride](std::int64_t row, std::int64_t d) { rest[row * stride + d] = 0; });
}

/// to[d / row_group][row][d mod row_group].
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void load_slabs(RowTeam const& team, float* to, HeadRows<T> const& from) {
  for (std::int64_t first = 0; first < from.width; first += row_group) {
    float* const slab = to + first * tile_lanes;
    auto const copy = [slab, first, from](std::int64_t row, std::int64_t k) {
      slab[row * row_group + k] = static_cast<float>(from.data[row * from.stride + first + k]);
    };
    if (first + row_group <= from.width) {
      grid_loop(team, from.count, row_group, copy);
    } else {
      std::int64_t const columns = from.width - first;
      grid_loop(team, from.count, row_group,
                [slab](std::int64_t row, std::int64_t k) { slab[row * row_group + k] = 0; });
      grid_loop(team, from.count, columns, copy);
    }
    float* const rest = slab + from.count * row_group;
    grid_loop(team, tile_lanes - from.count, row_group,
              [rest](std::int64_t row, std::int64_t k) { rest[row * row_group + k] = 0; });
  }
}

/// to[d][lane] = scale · row `lane`.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void load_transposed(RowTeam const& team, float* to, HeadRows<T> const& from, float scale) {
  grid_loop(team, from.width, from.count, [to, from, scale](std::int64_t d, std::int64_t lane) {
    to[d * tile_lanes + lane] = scale * static_cast<float>(from.data[lane * from.stride + d]);
  });
  float* const rest = to + from.count;
  grid_loop(team, from.width, tile_lanes - from.count,
            [rest](std::int64_t d, std::int64_t lane) { rest[d * tile_lanes + lane] = 0; });
}

/// Row `lane` of `to` = scale · from[d][lane].
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void store_transposed(RowTeam const& team, HeadRows<T> const& to, float const* from,
                                                  float scale) {
  grid_loop(team, to.count, to.width, [to, from, scale](std::int64_t row, std::int64_t d) {
    to.data[row * to.stride + d] = static_cast<T>(scale * from[d * tile_lanes + row]);
  });
}

/// What a kernel takes of its team's scratch.
struct ScratchUse {
  std::int64_t tiles;  // [D][lanes]
  std::int64_t copies; // of Streamed, on a host
  std::int64_t scores; // [lanes][lanes]
  std::int64_t rows;   // [lanes]
};

/// Hands out a team's scratch memory in pieces that start on a cache line.
class Scratch {
public:
  static constexpr std::int64_t line = 64;

  KOKKOS_FORCEINLINE_FUNCTION Scratch(RowTeam const& team, std::int64_t bytes) {
    std::uintptr_t const address = reinterpret_cast<std::uintptr_t>(team.scratch(bytes));
    next_ = reinterpret_cast<float*>((address + line - 1) / line * line);
  }
  /// [n_rows][tile_lanes], or its transpose.
  KOKKOS_FORCEINLINE_FUNCTION float* take(std::int64_t n_rows) {
    float* const piece = next_;
    next_ += n_rows * tile_lanes;
    return piece;
  }
  static constexpr std::int64_t bytes(ScratchUse const& use, std::int64_t d, TeamsOf teams = teams_here) {
    std::int64_t const wide = use.tiles + (teams == TeamsOf::host ? use.copies : 0);
    std::int64_t const rows = wide * padded(d) + use.scores * lanes_of(teams) + use.rows;
    return line + rows * lanes_of(teams) * static_cast<std::int64_t>(sizeof(float));
  }

private:
  float* next_;
};

/// Rows of a head that a team goes over, a tile at a time, and reads as a factor of products.
template <class T>
class Streamed {
public:
  enum class As { rows, columns, both };

  KOKKOS_FORCEINLINE_FUNCTION Streamed([[maybe_unused]] Scratch& scratch, [[maybe_unused]] std::int64_t d,
                                       [[maybe_unused]] As as) {
#if KOZERO_ON_HOST
    if (as != As::columns) rows_ = scratch.take(padded(d));
    if (as != As::rows) slabs_ = scratch.take(padded(d));
#endif
  }

  KOKKOS_FORCEINLINE_FUNCTION void load([[maybe_unused]] RowTeam const& team, HeadRows<T> const& from) {
    from_ = from;
#if KOZERO_ON_HOST
    if (rows_) load_rows(team, rows_, from);
    if (slabs_) load_slabs(team, slabs_, from);
#endif
  }

#if KOZERO_ON_HOST
  /// a(row, d)
  KOKKOS_FORCEINLINE_FUNCTION Factor<1> by_row() const { return attention::by_row(rows_, from_.width); }
  /// a(d, row)
  KOKKOS_FORCEINLINE_FUNCTION Factor<row_group> by_column() const { return attention::by_column(slabs_); }
#else
  KOKKOS_FORCEINLINE_FUNCTION FactorInPlace<T> by_row() const {
    return {from_.data, from_.stride, 1, from_.count, from_.width};
  }
  KOKKOS_FORCEINLINE_FUNCTION FactorInPlace<T> by_column() const {
    return {from_.data, 1, from_.stride, from_.width, from_.count};
  }
#endif

private:
  HeadRows<T> from_{};
  [[maybe_unused]] float* rows_ = nullptr;
  [[maybe_unused]] float* slabs_ = nullptr;
};

inline constexpr ScratchUse forward_scratch{.tiles = 2, .copies = 2, .scores = 1, .rows = 3};
inline constexpr ScratchUse query_gradient_scratch{.tiles = 3, .copies = 3, .scores = 2, .rows = 2};
inline constexpr ScratchUse key_gradient_scratch{.tiles = 4, .copies = 4, .scores = 2, .rows = 2};

/// A team for each (window, head, tile).
inline std::int64_t teams_of(AttentionShape const& shape) {
  return shape.batch * shape.heads * TilePlace::tiles_of(shape.context);
}

} // namespace kozero::attention
