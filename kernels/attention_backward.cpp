// With p = exp(s - logsumexp), s = q kᵀ / √D and delta = Σ_d dout · out (Dao et al., 2022, algorithm 4):
//   dv = pᵀ dout,   ds = p (dout vᵀ - delta),   dq = ds k / √D,   dk = dsᵀ q / √D.
// One kernel goes over tiles of queries for dq, one over tiles of keys for dk and dv, so that nothing is added to by
// two teams.

#include "kernels/attention.hpp"
#include "kernels/attention_tile.hpp"
#include "kernels/math.hpp"

namespace kozero {

namespace {

using namespace attention;

// delta [B·H·T].
template <class T>
void output_dot_gradient(Lane const& lane, AttentionShape const& shape, Vec<float> delta, ConstMat<T> dout,
                         ConstMat<T> out) {
  std::int64_t const context = shape.context;
  std::int64_t const heads = shape.heads;
  std::int64_t const d = cols(out) / heads;
  for_each_row(
      lane, "kozero::attention::backward::delta", rows(out), KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        for (std::int64_t head = 0; head < heads; ++head) {
          float const dot = row_sum(team, d, [&](std::int64_t i) {
            return static_cast<float>(dout(row, head * d + i)) * static_cast<float>(out(row, head * d + i));
          });
          row_once(team, [&] { delta((row / context * heads + head) * context + row % context) = dot; });
        }
      });
}

// The entries of a tile of `from`; 0 beyond the end.
KOKKOS_FORCEINLINE_FUNCTION void load_entries(RowTeam const& team, float* to, float const* from, std::int64_t count) {
  grid_loop(team, 1, tile_lanes,
            [to, from, count](std::int64_t, std::int64_t i) { to[i] = i < count ? from[i] : 0.0f; });
}

KOKKOS_FORCEINLINE_FUNCTION void clear(RowTeam const& team, float* to, std::int64_t n_rows) {
  grid_loop(team, n_rows, tile_lanes, [to](std::int64_t row, std::int64_t lane) { to[row * tile_lanes + lane] = 0; });
}

template <class T>
struct BackwardInput {
  Mat<T const> dout;
  Mat<T const> qkv;
  Vec<float const> logsumexp;
  Vec<float const> delta;
  AttentionShape shape;
  std::int64_t scratch_bytes;
};

// dq of a tile of queries; lanes are queries.
template <class T>
struct QueryTile {
  Mat<T> dqkv;
  BackwardInput<T> in;

  static constexpr ScratchUse scratch_use = query_gradient_scratch;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(RowTeam const& team, std::int64_t index) const {
    TilePlace const place(in.shape, cols(in.dout), index);
    std::int64_t const d = place.d;
    std::int64_t const dp = padded(d);
    float const scale = 1.0f / math::sqrt(static_cast<float>(d));
    Scratch scratch(team, in.scratch_bytes);
    float* const q = scratch.take(dp);
    float* const dout = scratch.take(dp);
    Streamed<T const> k(scratch, d, Streamed<T const>::As::both);
    Streamed<T const> v(scratch, d, Streamed<T const>::As::rows);
    float* const dq = scratch.take(dp);
    float* const scores = scratch.take(tile_lanes);
    float* const ds = scratch.take(tile_lanes);
    float* const logsumexp = scratch.take(1);
    float* const delta = scratch.take(1);

    load_transposed(team, q, place.rows(in.qkv, place.tile, 0), scale);
    load_transposed(team, dout, place.rows(in.dout, place.tile), 1.0f);
    load_entries(team, logsumexp, place.entries(in.logsumexp, place.tile), place.count(place.tile));
    load_entries(team, delta, place.entries(in.delta, place.tile), place.count(place.tile));
    clear(team, dq, dp);
    for (std::int64_t tile = 0; tile <= place.tile; ++tile) {
      k.load(team, place.rows(in.qkv, tile, 1));
      v.load(team, place.rows(in.qkv, tile, 2));
      tile_product<Into::overwrite>(team, scores, k.by_row(), q, tile_lanes, d);
      tile_product<Into::overwrite>(team, ds, v.by_row(), dout, tile_lanes, d);
      std::int64_t const hidden = tile == place.tile ? 0 : tile_lanes; // keys later than query + hidden are hidden
      grid_loop(team, tile_lanes, tile_lanes, [=](std::int64_t key, std::int64_t query) {
        std::int64_t const entry = key * tile_lanes + query;
        float const p = fast_exp(scores[entry] - logsumexp[query]);
        float const value = p * (ds[entry] - delta[query]);
        ds[entry] = key > query + hidden ? 0.0f : value;
      });
      tile_product<Into::accumulate>(team, dq, k.by_column(), ds, dp, tile_lanes);
    }
    store_transposed(team, place.rows(dqkv, place.tile, 0), dq, scale);
  }
};

// dk and dv of a tile of keys; lanes are keys.
template <class T>
struct KeyTile {
  Mat<T> dqkv;
  BackwardInput<T> in;

  static constexpr ScratchUse scratch_use = key_gradient_scratch;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(RowTeam const& team, std::int64_t index) const {
    TilePlace const place(in.shape, cols(in.dout), index);
    std::int64_t const d = place.d;
    std::int64_t const dp = padded(d);
    float const scale = 1.0f / math::sqrt(static_cast<float>(d));
    Scratch scratch(team, in.scratch_bytes);
    float* const k = scratch.take(dp);
    float* const v = scratch.take(dp);
    Streamed<T const> q(scratch, d, Streamed<T const>::As::both);
    Streamed<T const> dout(scratch, d, Streamed<T const>::As::both);
    float* const dk = scratch.take(dp);
    float* const dv = scratch.take(dp);
    float* const p = scratch.take(tile_lanes);
    float* const ds = scratch.take(tile_lanes);
    float* const logsumexp = scratch.take(1);
    float* const delta = scratch.take(1);

    load_transposed(team, k, place.rows(in.qkv, place.tile, 1), scale);
    load_transposed(team, v, place.rows(in.qkv, place.tile, 2), 1.0f);
    clear(team, dk, dp);
    clear(team, dv, dp);
    for (std::int64_t tile = place.tile; tile < TilePlace::tiles_of(place.context); ++tile) {
      q.load(team, place.rows(in.qkv, tile, 0));
      dout.load(team, place.rows(in.dout, tile));
      load_entries(team, logsumexp, place.entries(in.logsumexp, tile), place.count(tile));
      load_entries(team, delta, place.entries(in.delta, tile), place.count(tile));
      tile_product<Into::overwrite>(team, p, q.by_row(), k, tile_lanes, d);
      tile_product<Into::overwrite>(team, ds, dout.by_row(), v, tile_lanes, d);
      std::int64_t const hidden = tile == place.tile ? 0 : tile_lanes;
      // Queries beyond the end have dout = q = 0 and add nothing.
      grid_loop(team, tile_lanes, tile_lanes, [=](std::int64_t query, std::int64_t key) {
        std::int64_t const entry = query * tile_lanes + key;
        float const value = fast_exp(p[entry] - logsumexp[query]);
        float const seen = key > query + hidden ? 0.0f : value;
        p[entry] = seen;
        ds[entry] = seen * (ds[entry] - delta[query]);
      });
      tile_product<Into::accumulate>(team, dv, dout.by_column(), p, dp, tile_lanes);
      tile_product<Into::accumulate>(team, dk, q.by_column(), ds, dp, tile_lanes);
    }
    store_transposed(team, place.rows(dqkv, place.tile, 1), dk, scale);
    store_transposed(team, place.rows(dqkv, place.tile, 2), dv, 1.0f);
  }
};

template <class Tile, class T>
void run_tiles(Lane const& lane, char const* label, Mat<T> dqkv, BackwardInput<T> in) {
  std::int64_t const d = cols(in.dout) / in.shape.heads;
  in.scratch_bytes = Scratch::bytes(Tile::scratch_use, d);
  for_each_row(lane, label, teams_of(in.shape), in.scratch_bytes, Tile{dqkv, in});
}

} // namespace

template <class T>
void attention_backward(Lane const& lane, AttentionShape const& shape, Mat<T> dqkv, Vec<float> delta, ConstMat<T> dout,
                        ConstMat<T> out, Vec<float const> logsumexp, ConstMat<T> qkv) {
  if (shape.batch * shape.context * shape.heads == 0) return;
  output_dot_gradient<T>(lane, shape, delta, dout, out);
  BackwardInput<T> const in{dout, qkv, logsumexp, delta, shape, 0};
  run_tiles<QueryTile<T>>(lane, "kozero::attention::backward::queries", dqkv, in);
  run_tiles<KeyTile<T>>(lane, "kozero::attention::backward::keys", dqkv, in);
}

template void attention_backward(Lane const&, AttentionShape const&, Mat<float>, Vec<float>, ConstMat<float>,
                                 ConstMat<float>, Vec<float const>, ConstMat<float>);
template void attention_backward(Lane const&, AttentionShape const&, Mat<bf16>, Vec<float>, ConstMat<bf16>,
                                 ConstMat<bf16>, Vec<float const>, ConstMat<bf16>);
template void attention_backward(Lane const&, AttentionShape const&, Mat<fp16>, Vec<float>, ConstMat<fp16>,
                                 ConstMat<fp16>, Vec<float const>, ConstMat<fp16>);

} // namespace kozero
