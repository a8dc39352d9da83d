#pragma once
#include "core/ledger.hpp"
#include "data/batch_shape.hpp"

#include <cstdint>

namespace kozero {

/// The memory of this rank's tokens: a batch's on the host, a micro-batch's on the device. B = micro, T = context.
struct BatchBuffers {
  BatchBuffers(BatchShape const& shape, std::int64_t context, Ledger& ledger);

  HostBuffer<std::int32_t> inputs, targets;                 // [accumulate,B,T]
  HostBuffer<std::int32_t> starts, positions;               // TokenGroups of a micro-batch: [B·T+1] and [B·T]
  DeviceBuffer<std::int32_t> device_inputs, device_targets; // [B,T]
  DeviceBuffer<std::int32_t> device_starts, device_positions;
};

} // namespace kozero
