#pragma once
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "core/views.hpp"
#include "layout/block_layout.hpp"
#include "layout/unit_schedule.hpp"
#include "zero/plan.hpp"

#include <vector>

namespace kozero {

/// Where backward passes add gradients that do not stay whole: fp32, one block at a time. The blocks of units that only
/// ever have their own gradient under way share a slot, or two in turn, so that one may be reduced while the next unit
/// fills the other; a block that a second unit adds to (a tied embedding) has one of its own, since it stays under way
/// across units.
class GradSlots {
public:
  enum class Shared { one = 1, two = 2 };

  GradSlots(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses, Shared shared,
            Ledger& ledger);

  /// The slot of a block; zeroed when it is asked for the first time since end(). [capacity of the block]
  float* begin(Lane const& lane, int block);
  float* data(int block) const { return slots_[slot_of_block_[block]].data(); }
  /// Blocks with the same number are never under way at once.
  int slot_of(int block) const { return slot_of_block_[block]; }
  int count() const { return static_cast<int>(slots_.size()); }
  void end(int block) { under_way_[block] = false; }

private:
  std::vector<std::int64_t> sizes_; // of the blocks
  std::vector<int> slot_of_block_;
  std::vector<bool> under_way_;
  std::vector<DeviceBuffer<float>> slots_;
};

} // namespace kozero
