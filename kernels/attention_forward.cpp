#include "kernels/attention.hpp"
#include "kernels/attention_tile.hpp"
#include "kernels/math.hpp"

namespace kozero {

namespace {

using namespace attention;

// What a team keeps of its queries while it goes over the keys. Lanes are queries.
struct Running {
  float* top;  // largest score so far
  float* sum;  // Σ exp(score - top)
  float* fade; // what the older part is worth under the new top
  float* out;  // transposed: Σ exp(score - top) · v
};

KOKKOS_FORCEINLINE_FUNCTION void start(RowTeam const& team, Running const& run, std::int64_t d) {
  lane_loop(team, 1, [run](std::int64_t, std::int64_t query) {
    run.top[query] = -__builtin_huge_valf();
    run.sum[query] = 0;
  });
  grid_loop(team, d, tile_lanes,
            [run](std::int64_t row, std::int64_t query) { run.out[row * tile_lanes + query] = 0; });
}

// In the tile on the diagonal: a query sees its own position and those before it.
KOKKOS_FORCEINLINE_FUNCTION void hide_later_keys(RowTeam const& team, float* scores) {
  grid_loop(team, tile_lanes, tile_lanes, [scores](std::int64_t key, std::int64_t query) {
    float const score = scores[key * tile_lanes + query];
    scores[key * tile_lanes + query] = key > query ? -__builtin_huge_valf() : score;
  });
}

// A tile of scores[key][query] joins the running softmax and becomes exp(score - top).
KOKKOS_FORCEINLINE_FUNCTION void join_scores(RowTeam const& team, Running const& run, float* scores, std::int64_t d) {
  lane_loop(team, 1, [run](std::int64_t, std::int64_t query) { run.fade[query] = run.top[query]; });
  lane_loop(team, tile_lanes, [run, scores](std::int64_t key, std::int64_t query) {
    float const score = scores[key * tile_lanes + query];
    float const top = run.top[query];
    run.top[query] = top < score ? score : top;
  });
  lane_loop(team, 1, [run](std::int64_t, std::int64_t query) {
    run.fade[query] = fast_exp(run.fade[query] - run.top[query]);
    run.sum[query] *= run.fade[query];
  });
  lane_loop(team, tile_lanes, [run, scores](std::int64_t key, std::int64_t query) {
    float const p = fast_exp(scores[key * tile_lanes + query] - run.top[query]);
    scores[key * tile_lanes + query] = p;
    run.sum[query] += p;
  });
  grid_loop(team, d, tile_lanes,
            [run](std::int64_t row, std::int64_t query) { run.out[row * tile_lanes + query] *= run.fade[query]; });
}

template <class T>
struct ForwardTile {
  Mat<T> out;
  Vec<float> logsumexp;
  Mat<T const> qkv;
  AttentionShape shape;
  std::int64_t scratch_bytes;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(RowTeam const& team, std::int64_t index) const {
    TilePlace const place(shape, cols(out), index);
    std::int64_t const d = place.d;
    std::int64_t const dp = padded(d);
    Scratch scratch(team, scratch_bytes);
    float* const q = scratch.take(dp);
    Streamed<T const> k(scratch, d, Streamed<T const>::As::rows);
    Streamed<T const> v(scratch, d, Streamed<T const>::As::columns);
    float* const scores = scratch.take(tile_lanes);
    Running const run{scratch.take(1), scratch.take(1), scratch.take(1), scratch.take(dp)};

    load_transposed(team, q, place.rows(qkv, place.tile, 0), 1.0f / math::sqrt(static_cast<float>(d)));
    start(team, run, dp);
    for (std::int64_t tile = 0; tile <= place.tile; ++tile) {
      k.load(team, place.rows(qkv, tile, 1));
      v.load(team, place.rows(qkv, tile, 2));
      tile_product<Into::overwrite>(team, scores, k.by_row(), q, tile_lanes, d);
      if (tile == place.tile) hide_later_keys(team, scores);
      join_scores(team, run, scores, dp);
      tile_product<Into::accumulate>(team, run.out, v.by_column(), scores, dp, tile_lanes);
    }
    grid_loop(team, d, tile_lanes,
              [run](std::int64_t row, std::int64_t query) { run.out[row * tile_lanes + query] /= run.sum[query]; });
    store_transposed(team, place.rows(out, place.tile), run.out, 1.0f);
    float* const kept = place.entries(logsumexp, place.tile);
    row_loop(team, place.count(place.tile),
             [kept, run](std::int64_t query) { kept[query] = run.top[query] + math::log(run.sum[query]); });
  }
};

} // namespace

template <class T>
void attention_forward(Lane const& lane, AttentionShape const& shape, Mat<T> out, Vec<float> logsumexp,
                       ConstMat<T> qkv) {
  if (shape.batch * shape.context * shape.heads == 0) return;
  std::int64_t const d = cols(out) / shape.heads;
  std::int64_t const scratch_bytes = Scratch::bytes(forward_scratch, d);
  for_each_row(lane, "kozero::attention::forward", teams_of(shape), scratch_bytes,
               ForwardTile<T>{out, logsumexp, qkv, shape, scratch_bytes});
}

template void attention_forward(Lane const&, AttentionShape const&, Mat<float>, Vec<float>, ConstMat<float>);
template void attention_forward(Lane const&, AttentionShape const&, Mat<bf16>, Vec<float>, ConstMat<bf16>);
template void attention_forward(Lane const&, AttentionShape const&, Mat<fp16>, Vec<float>, ConstMat<fp16>);

} // namespace kozero
