#pragma once
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "layout/block_layout.hpp"
#include "layout/sum_order.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace kozero {

/// The deck's sections that say who holds what.
struct Sharding {
  ZeroConfig zero;
  OffloadConfig offload;
  GradientType gradients = GradientType::fp32;
  SumOrder sums = SumOrder::ascending; // of gradients over micro-batches
};

inline Sharding sharding_of(Config const& config) {
  bool const is_fp32 = config.precision.compute == ComputeType::fp32; // then it is the type of either choice
  return {.zero = config.zero,
          .offload = config.offload,
          .gradients = is_fp32 ? GradientType::fp32 : config.precision.gradients,
          .sums = config.run.reproducibility == Reproducibility::topology ? SumOrder::tree : SumOrder::ascending};
}

/// A run of a block's elements that this rank updates, in one memory.
struct Piece {
  int block = 0;
  Interval interval;
  Space space = Space::device; // or host
};

/// Those of one block among things in block order.
template <class T, class BlockOf>
std::span<T const> of_block(std::vector<T> const& all, int block, BlockOf const& block_of) {
  return {std::ranges::lower_bound(all, block, {}, block_of), std::ranges::upper_bound(all, block, {}, block_of)};
}

/// What ZeRO's stage and offload mean: what of each block a rank keeps, where, and when it moves (Rajbhandari et al.,
/// 2020; Ren et al., 2021). The one place that reads the stage number; the stores and the engine ask the plan.
///
/// | stage | parameters | gradients | reduction                          | optimizer state |
/// |-------|------------|-----------|------------------------------------|-----------------|
/// | 0     | whole      | whole     | all_reduce, last micro-batch       | whole           |
/// | 1     | whole      | whole     | reduce_scatter, last micro-batch   | shard           |
/// | 2     | whole      | shard     | reduce_scatter, every micro-batch  | shard           |
/// | 3     | shard      | shard     | reduce_scatter, every micro-batch  | shard           |
///
/// With offload the optimizer state of `ratio` of the shards lives on the host, and so do their reduced gradients.
///
/// Where sums are a tree over all micro-batches of all ranks, the plan says which of these a rank takes, so that what
/// it adds up by itself and what ranks add up together are nodes of the same tree at every stage and on any number of
/// ranks. Let their number be 2^k times an odd q, and N = 2^j ranks. At stages 2 and 3 ranks take neighbours, so a
/// reduction makes a node j levels up. At 0 and 1 they take 2^(k-j) in a row, add them up by themselves, and q
/// reductions make nodes k levels up. What is reduced is added up by the rest of the tree.
class Plan {
public:
  enum class Keep { whole, shard };

  /// `micro_batches` a rank and update.
  Plan(Sharding const& sharding, int rank, int ranks, std::int64_t micro_batches = 1);

  Keep parameters() const { return parameters_; }
  Keep gradients() const { return gradients_; }
  Keep optimizer() const { return optimizer_; }
  bool gradients_as_computed() const { return gradients_as_computed_; } // in the compute type, not fp32
  SumOrder sums() const { return sums_; } // of gradients over micro-batches, on a rank and of what was reduced
  std::int64_t micro_batches() const { return micro_batches_; }
  /// How often the gradients of an update are reduced: each time after as many micro-batches.
  std::int64_t reductions() const;
  /// Micro-batches of a rank that are neighbours in the batch.
  std::int64_t in_a_row() const { return sums_ == SumOrder::tree ? micro_batches_ / reductions() : 1; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  Partition partition(std::int64_t block_size) const { return {block_size, ranks_}; }
  /// The part of a block that this rank updates.
  Interval updated(Partition const& partition) const;
  /// The part of a block that this rank answers for in sums over all parameters: its shard at every stage, so that
  /// every stage adds in the same order.
  Interval counted(Partition const& partition) const { return partition.shard(rank_); }
  /// Where the state of what this rank updates lives: in block order, of each block the device's piece first. A block
  /// has one piece at least; that is empty where this rank updates nothing of it. A block of which both have something
  /// is cut at a multiple of `tile` elements from the start of the shard.
  std::vector<Piece> pieces(ModelLayout const& layout) const;
  static constexpr std::int64_t tile = 4096;

  /// Whether any update is applied one batch late.
  bool delays() const { return delayed_from_.has_value(); }
  /// Whether update number `t`, from 1, is.
  bool delays(std::int64_t t) const { return delayed_from_ && t >= *delayed_from_; }

private:
  Keep parameters_ = Keep::whole;
  Keep gradients_ = Keep::whole;
  Keep optimizer_ = Keep::whole;
  bool gradients_as_computed_ = false;
  SumOrder sums_ = SumOrder::ascending;
  std::int64_t micro_batches_ = 1;
  double host_ratio_ = 0;
  std::optional<std::int64_t> delayed_from_;
  int rank_;
  int ranks_;
};

} // namespace kozero
