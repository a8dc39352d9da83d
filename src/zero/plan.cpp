#include "zero/plan.hpp"

#include "core/error.hpp"

namespace kozero {

Plan::Plan(ZeroConfig const& config, int rank, int ranks) : rank_(rank), ranks_(ranks) {
  KOZERO_REQUIRE(0 <= config.stage && config.stage <= 3, "zero.stage is {} (there are 0, 1, 2 and 3); choose one",
                 config.stage);
  optimizer_ = config.stage >= 1 ? Keep::shard : Keep::whole;
  gradients_ = config.stage >= 2 ? Keep::shard : Keep::whole;
  parameters_ = config.stage >= 3 ? Keep::shard : Keep::whole;
}

Interval Plan::updated(Partition const& partition) const {
  return optimizer_ == Keep::shard ? partition.shard(rank_) : Interval{0, partition.size()};
}

} // namespace kozero
