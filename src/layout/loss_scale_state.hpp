#pragma once
#include <cstdint>

namespace kozero {

/// Where a dynamic loss scale stands: what a checkpoint keeps of optim/loss_scale.hpp.
struct LossScaleState {
  double scale = 1;              // a power of two
  std::int64_t clean_in_row = 0; // updates without an overflow since the last overflow or doubling
  std::int64_t overflows = 0;    // since the scale was last doubled
  friend bool operator==(LossScaleState const&, LossScaleState const&) = default;
};

} // namespace kozero
