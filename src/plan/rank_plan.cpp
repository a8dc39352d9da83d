#include "plan/rank_plan.hpp"

#include "comm/planned.hpp"
#include "comm/process_grid.hpp"
#include "config/compute_type.hpp"
#include "model/families.hpp"
#include "train/training.hpp"

namespace kozero {

RankPlan plan_rank(Config const& config, BatchShape const& batch, int rank, std::optional<ExchangeWay> const& way) {
  Ledger ledger(Ledger::Buffers::counted);
  PlannedRanks world(rank, static_cast<int>(batch.ranks));
  ProcessGrid const grid(world, config.parallel, ledger);
  auto const training = make_training({.config = config, .batch = batch, .tokens = nullptr}, grid.state(), ledger);
  return {ledger.peak_rows(), training->planned_traffic(way)};
}

AttentionChoice attention_of(Config const& config, BatchShape const& batch) {
  return architecture_of(config.model)->attention(dtype_of_compute(config.precision.compute), batch.micro);
}

} // namespace kozero
