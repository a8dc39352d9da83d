#pragma once
#include "comm/joined_sum.hpp"
#include "core/aligned_sum.hpp"
#include "core/event.hpp"
#include "core/ledger.hpp"
#include "core/views.hpp"
#include "data/batch_shape.hpp"

#include <cstdint>
#include <vector>

namespace kozero {

/// The sum of a batch's losses, in an order that depends on neither ranks nor micro-batches: the losses of a window's
/// rows by a tree of neighbours, then the windows of the batch, as they are numbered over all ranks, by another.
///
/// The sums of windows stay on the device until the batch's last; then they come to the host at once.
///
///     loss.begin();
///     for each micro-batch m:  loss.add(lane, m, feed.first_window(m), head.losses());
///     loss.collect(lane);
///     double const total = loss.total(ranks);
class BatchLoss {
public:
  BatchLoss(BatchShape const& shape, Ledger& ledger);
  void begin();
  /// The losses [N] of micro-batch m, from 0, whose first window has that number in the batch.
  void add(Lane const& lane, std::int64_t m, std::int64_t first_window, Vec<float const> losses);
  /// All have been added: they come to the host while the lane goes on.
  void collect(Lane const& lane);
  /// Of all ranks, the same on each. Waits for what collect() has begun. Collective.
  double total(Ranks& ranks);

private:
  BatchShape shape_;
  DeviceBuffer<double> windows_; // [accumulate,micro]: Σ losses of each window
  PinnedBuffer<double> collected_;
  Event came_;
  std::vector<std::int64_t> first_windows_; // of the micro-batches
  AlignedSum<1> sum_;
  SumJoiner<1> joiner_;
};

} // namespace kozero
