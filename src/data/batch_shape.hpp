#pragma once
// Which samples of a run each rank takes, in integers.

#include "config/config.hpp"

#include <cstdint>

namespace kozero {

/// A batch is accumulate × ranks × micro windows: micro-batch by micro-batch, in each rank by rank, in each row by
/// row. Or ranks take `in_a_row` micro-batches, which divides accumulate, before it is the next one's turn. Samples are
/// numbered through the run, and every batch is whole: it goes on into the next epoch where one ends. So all ranks do
/// the same number of updates, whatever the number of windows, and batch b holds samples [b·G, (b+1)·G), G = global(),
/// however many ranks and micro-batches share them.
struct BatchShape {
  std::int64_t micro = 1;      // windows of one forward pass
  std::int64_t accumulate = 1; // micro-batches a rank and batch
  std::int64_t ranks = 1;
  std::int64_t in_a_row = 1; // micro-batches of a rank that are neighbours in the batch

  /// Windows a batch.
  constexpr std::int64_t global() const { return micro * accumulate * ranks; }
  /// The first of the `micro` consecutive samples of a rank's micro-batch; all counted from 0.
  constexpr std::int64_t first_sample(std::int64_t batch, std::int64_t micro_batch, std::int64_t rank) const {
    std::int64_t const before = (micro_batch / in_a_row * ranks + rank) * in_a_row + micro_batch % in_a_row;
    return batch * global() + before * micro;
  }
};

/// The shape that the deck means on so many ranks. InputError as resolve_batch().
BatchShape batch_shape(BatchConfig const& config, std::int64_t ranks);

/// Not a whole number in general: no window is left out at the end of an epoch.
double updates_per_epoch(std::int64_t windows, BatchShape const& shape);

/// Batches that an evaluation takes: `wanted`, or fewer when the windows are at their end before. Evaluation goes
/// through windows 0, 1, 2, … in order; the last batch may be in part, or on some ranks wholly, past the end.
std::int64_t evaluation_batches(std::int64_t windows, BatchShape const& shape, std::int64_t wanted);

} // namespace kozero
