#pragma once
#include "config/config.hpp"
#include "layout/partition.hpp"

namespace kozero {

/// What ZeRO's stage means: what of each block a rank keeps, and when it moves (Rajbhandari et al., 2020). The one
/// place that reads the stage number; the stores and the engine ask the plan.
///
/// | stage | parameters | gradients | reduction                          | optimizer state |
/// |-------|------------|-----------|------------------------------------|-----------------|
/// | 0     | whole      | whole     | all_reduce, last micro-batch       | whole           |
/// | 1     | whole      | whole     | reduce_scatter, last micro-batch   | shard           |
/// | 2     | whole      | shard     | reduce_scatter, every micro-batch  | shard           |
/// | 3     | shard      | shard     | reduce_scatter, every micro-batch  | shard           |
class Plan {
public:
  enum class Keep { whole, shard };

  Plan(ZeroConfig const& config, int rank, int ranks);

  Keep parameters() const { return parameters_; }
  Keep gradients() const { return gradients_; }
  Keep optimizer() const { return optimizer_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  Partition partition(std::int64_t block_size) const { return {block_size, ranks_}; }
  /// The part of a block that this rank updates.
  Interval updated(Partition const& partition) const;
  /// The part of a block that this rank answers for in sums over all parameters: its shard at every stage, so that
  /// every stage adds in the same order.
  Interval counted(Partition const& partition) const { return partition.shard(rank_); }

private:
  Keep parameters_ = Keep::whole;
  Keep gradients_ = Keep::whole;
  Keep optimizer_ = Keep::whole;
  int rank_;
  int ranks_;
};

} // namespace kozero
