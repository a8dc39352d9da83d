#pragma once
#include "core/dtype.hpp"
#include "core/ledger.hpp"
#include "layout/partition.hpp"

namespace kozero {

/// The arrays of the optimizer's state, and the gradient of an update that is pending.
enum class StateKind { master, m, v, gradient };

/// An array of model state that a rank holds of a block, in one memory.
struct HeldState {
  int block = 0;
  Interval interval; // of the block; may be empty
  StateKind kind = StateKind::master;
  DType type = DType::f32;
  void* data = nullptr; // of the interval's first element
  Space space = Space::device;
};

} // namespace kozero
