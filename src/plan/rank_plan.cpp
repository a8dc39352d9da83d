#include "plan/rank_plan.hpp"

#include "comm/planned_comm.hpp"
#include "train/training.hpp"

namespace kozero {

RankPlan plan_rank(Config const& config, BatchShape const& batch, int rank) {
  Ledger ledger(Ledger::Buffers::counted);
  PlannedComm comm(ledger, rank, static_cast<int>(batch.ranks));
  auto const training = make_training({.config = config, .batch = batch, .tokens = nullptr}, comm, ledger);
  return {ledger.peak_rows(), training->planned_traffic()};
}

} // namespace kozero
