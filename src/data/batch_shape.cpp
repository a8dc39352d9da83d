#include "data/batch_shape.hpp"

#include "config/check.hpp"

#include <algorithm>

namespace kozero {

BatchShape batch_shape(BatchConfig const& config, std::int64_t ranks) {
  ResolvedBatch const batch = resolve_batch(config, ranks);
  return {batch.micro, batch.accumulate, ranks};
}

double updates_per_epoch(std::int64_t windows, BatchShape const& shape) {
  return static_cast<double>(windows) / static_cast<double>(shape.global());
}

std::int64_t evaluation_batches(std::int64_t windows, BatchShape const& shape, std::int64_t wanted) {
  return std::min(wanted, (windows + shape.global() - 1) / shape.global());
}

} // namespace kozero
