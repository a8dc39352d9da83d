#pragma once
#include "core/lane.hpp"
#include "model/unit.hpp"

#include <cstdint>

namespace kozero {

/// The micro-batches of a batch on this rank, as a step takes them.
class MicroBatches {
public:
  virtual ~MicroBatches() = default;
  virtual std::int64_t micro_batches() const = 0;
  /// Micro-batch m on the device; the one before it is overwritten.
  virtual MicroBatch upload(Lane const& lane, std::int64_t m) = 0;
};

} // namespace kozero
