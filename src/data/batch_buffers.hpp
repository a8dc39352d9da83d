#pragma once
#include "core/event.hpp"
#include "core/ledger.hpp"
#include "core/views.hpp"
#include "data/batch_shape.hpp"

#include <array>
#include <cstdint>

namespace kozero {

/// The memory of this rank's tokens: a batch's on the host, those of two micro-batches on their way and on the device.
/// B = micro, T = context.
struct BatchBuffers {
  BatchBuffers(BatchShape const& shape, std::int64_t context, std::int64_t vocabulary, Ledger& ledger);

  HostBuffer<std::int32_t> inputs, targets; // [accumulate,B,T]
  HostBuffer<std::int32_t> token_counts;    // [vocabulary], scratch of group_tokens

  /// What a micro-batch sends to the device, as one array: inputs [B·T], targets [B·T], then its TokenGroups, starts
  /// [B·T+1] and positions [B·T].
  struct MicroBatchSlot {
    PinnedBuffer<std::int32_t> pinned;
    DeviceBuffer<std::int32_t> device;
    Event copied; // the pinned memory may be written again
    Event used;   // the device memory may be
  };
  std::array<MicroBatchSlot, 2> slots;
};

} // namespace kozero
