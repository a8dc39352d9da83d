#pragma once
// A model whose state on the host is work of several tiles, on any number of ranks.

#include "model/families.hpp"
#include "support/small_run.hpp"
#include "zero/plan.hpp"

#include <algorithm>
#include <cmath>

namespace kozero::test {

/// What the host's part of an update works on at once (zero/host_update.cpp).
inline constexpr std::int64_t host_tile = 1 << 20;

/// A rank's shard of the layer, and 0.7 of it, is longer than that.
inline ModelConfig long_shards(int ranks) {
  auto const width = 2 * static_cast<std::int64_t>(std::ceil(180 * std::sqrt(ranks)));
  return gpt2_model({.layers = 1, .heads = 2, .width = width, .context = 4, .vocabulary = 40});
}

/// Elements of the longest piece that a rank has on the host.
inline std::int64_t longest_on_host(SmallRunOptions const& options, Group const& group) {
  std::int64_t longest = 0;
  Plan const plan({.zero = {options.stage}, .offload = options.offload}, group.rank(), group.size());
  for (Piece const& piece : plan.pieces(architecture_of(options.model)->layout())) {
    if (piece.space == Space::host) longest = std::max(longest, piece.interval.size());
  }
  return longest;
}

} // namespace kozero::test
