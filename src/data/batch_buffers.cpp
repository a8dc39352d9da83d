#include "data/batch_buffers.hpp"

namespace kozero {

BatchBuffers::BatchBuffers(BatchShape const& shape, std::int64_t context, std::int64_t vocabulary, Ledger& ledger)
    : inputs(ledger, Category::workspace, "inputs", shape.accumulate * shape.micro * context),
      targets(ledger, Category::workspace, "targets", shape.accumulate * shape.micro * context),
      token_counts(ledger, Category::workspace, "token counts", vocabulary) {
  std::int64_t const count = 4 * shape.micro * context + 1;
  for (auto& slot : slots) {
    slot.pinned = PinnedBuffer<std::int32_t>(ledger, Category::workspace, "tokens", count);
    slot.device = DeviceBuffer<std::int32_t>(ledger, Category::workspace, "tokens", count);
  }
}

} // namespace kozero
