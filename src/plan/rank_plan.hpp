#pragma once
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "data/batch_shape.hpp"
#include "kernels/attention.hpp"
#include "zero/traffic_plan.hpp"

#include <optional>
#include <vector>

namespace kozero {

/// What a rank will hold and move when it trains, known beforehand.
struct RankPlan {
  std::vector<MemoryRow> memory; // the most that each row will hold; pinned memory apart from the host's
  UpdateTraffic traffic;         // of each update
};

/// Plans one rank of a training without memory, device or MPI: builds the objects that training builds, with a ledger
/// that only counts. So the figures are those of the ledger and of the collectives, to the byte, at any size. Rank 0
/// holds the largest shards; no rank holds more. `way`: of the ranks that share the model's state; none: all on one
/// host.
RankPlan plan_rank(Config const& config, BatchShape const& batch, int rank, std::optional<ExchangeWay> const& way = {});

/// How each rank computes attention, and why. InputError where this build has no way for the deck's context.
AttentionChoice attention_of(Config const& config, BatchShape const& batch);

} // namespace kozero
