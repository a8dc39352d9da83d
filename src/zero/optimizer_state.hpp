#pragma once
#include "core/ledger.hpp"
#include "layout/block_layout.hpp"
#include "layout/state_entry.hpp"
#include "zero/plan.hpp"

#include <vector>

namespace kozero {

/// The fp32 truth: master parameters and Adam's moments, for the part of each block that this rank updates.
class OptimizerState {
public:
  struct Block {
    Interval interval; // of the block's elements
    std::int64_t decay_count = 0;
    DeviceBuffer<float> master, m, v;
  };

  OptimizerState(Plan const& plan, ModelLayout const& layout, Ledger& ledger);

  /// Master from (seed, tensor, element); moments zero.
  void initialise(ModelLayout const& layout, std::int64_t seed);
  std::vector<StateEntry> entries(ModelLayout const& layout) const;

  Block const& block(int number) const { return blocks_[number]; }
  int count() const { return static_cast<int>(blocks_.size()); }

private:
  std::vector<Block> blocks_;
};

} // namespace kozero
