#include "zero/grad_slots.hpp"

#include "core/launch.hpp"

#include <algorithm>

namespace kozero {

GradSlots::GradSlots(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses, Shared shared,
                     Ledger& ledger)
    : slot_of_block_(layout.size(), 0), under_way_(layout.size(), false) {
  std::vector<bool> const has_own = shared_blocks(uses);
  std::vector<std::int64_t> capacities(static_cast<std::size_t>(shared), 0);
  for (std::size_t b = 0; b < layout.size(); ++b) {
    sizes_.push_back(layout[b].size());
    slot_of_block_[b] = static_cast<int>(b) % static_cast<int>(shared); // neighbours take turns
    if (has_own[b]) {
      slot_of_block_[b] = static_cast<int>(capacities.size());
      capacities.push_back(0);
    }
    auto& capacity = capacities[slot_of_block_[b]];
    capacity = std::max(capacity, plan.partition(layout[b].size()).capacity());
  }
  for (std::int64_t const capacity : capacities) {
    slots_.emplace_back(ledger, Category::gradients, "gradient slot", capacity, DeviceBuffer<float>::Init::none);
  }
}

float* GradSlots::begin(Lane const& lane, int block) {
  float* const slot = data(block);
  if (!under_way_[block]) {
    under_way_[block] = true;
    fill(lane, on_device(slot), 0.0f, sizes_[block]);
  }
  return slot;
}

} // namespace kozero
