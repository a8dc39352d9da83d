#include "kernels/window_sums.hpp"

#include "core/error.hpp"
#include "kernels/aligned_tree.hpp"
#include "kernels/row_reduce.hpp"

namespace kozero {

namespace {

constexpr std::int64_t most_chunks = 128; // of a window: what the threads of a team share
constexpr std::int64_t scratch_bytes = most_chunks * static_cast<std::int64_t>(sizeof(double));
constexpr int most_levels = 40;

/// Rows of a chunk: a power of two, so that chunks are nodes of the tree.
std::int64_t chunk_rows(std::int64_t window_rows) {
  std::int64_t n = 1;
  while (n * most_chunks < window_rows) n *= 2;
  return n;
}

} // namespace

void window_sums(Lane const& lane, Vec<double> sums, ConstVec<float> losses) {
  std::int64_t const windows = rows(sums);
  if (windows == 0) return;
  KOZERO_REQUIRE(rows(losses) % windows == 0,
                 "{} losses are no whole windows of {} (a fault of kozero); please report it", rows(losses), windows);
  std::int64_t const t = rows(losses) / windows;
  std::int64_t const chunk = chunk_rows(t);
  std::int64_t const chunks = (t + chunk - 1) / chunk;
  for_each_row(
      lane, "kozero::window_sums", windows, scratch_bytes, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t window) {
        auto* const parts = static_cast<double*>(team.scratch(scratch_bytes));
        float const* const loss = losses.data() + window * t;
        row_loop(team, chunks, [&](std::int64_t c) {
          std::int64_t const begin = c * chunk;
          std::int64_t const n = t - begin < chunk ? t - begin : chunk;
          parts[c] = detail::neighbour_sum<most_levels>(
              n, [=](std::int64_t i) { return static_cast<double>(loss[begin + i]); });
        });
        row_once(team, [&] {
          sums(window) = detail::neighbour_sum<most_levels>(chunks, [=](std::int64_t c) { return parts[c]; });
        });
      });
}

} // namespace kozero
