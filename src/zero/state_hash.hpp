#pragma once
#include "comm/communicator.hpp"
#include "zero/optimizer_state.hpp"

#include <cstdint>
#include <string>

namespace kozero {

/// Elements that hash_state has in host memory at a time: long enough for a message.
inline constexpr std::int64_t state_hash_chunk = 1 << 16;

/// XXH3-128, as 32 hexadecimal digits, over all tensors in model order: of each its master, m and v, unpadded, as
/// little-endian fp32. It does not depend on how the state is sharded. `chunk` is memory of state_hash_chunk elements.
/// Collective; every rank gets it.
std::string hash_state(Lane const& lane, Plan const& plan, ModelLayout const& layout, OptimizerState const& state,
                       Communicator& comm, HostBuffer<float> const& chunk);

} // namespace kozero
