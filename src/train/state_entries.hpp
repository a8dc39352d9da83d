#pragma once
#include "io/state_entry.hpp"
#include "layout/block_layout.hpp"
#include "zero/held_state.hpp"

#include <span>
#include <vector>

namespace kozero {

/// What a rank holds of blocks, as entries of a checkpoint: for each array one entry a tensor of its block, also for
/// those that it has nothing of. In the arrays' order, and of each in model order.
std::vector<StateEntry> state_entries(ModelLayout const& layout, std::span<HeldState const> held);

} // namespace kozero
