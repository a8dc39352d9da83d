#pragma once
#include "comm/ranks.hpp"
#include "core/aligned_sum.hpp"
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "core/views.hpp"
#include "data/batch_shape.hpp"

namespace kozero {

/// The sum of a batch's losses, in an order that depends on neither ranks nor micro-batches: the losses of a window's
/// rows by a tree of neighbours, then the windows of the batch, as they are numbered over all ranks, by another.
///
///     loss.begin();
///     for each micro-batch:  loss.add(lane, feed.first_window(m), head.losses());
///     double const total = loss.total(ranks);
class BatchLoss {
public:
  BatchLoss(BatchShape const& shape, Ledger& ledger);
  void begin() { sum_ = AlignedSum<1>(shape_.global()); }
  /// The losses [N] of a micro-batch whose first window has that number in the batch. Waits for the lane.
  void add(Lane const& lane, std::int64_t first_window, Vec<float const> losses);
  /// Of all ranks, the same on each. Collective.
  double total(Ranks& ranks) const;

private:
  BatchShape shape_;
  DeviceBuffer<double> windows_; // [micro]: Σ losses of each window
  AlignedSum<1> sum_;
};

} // namespace kozero
