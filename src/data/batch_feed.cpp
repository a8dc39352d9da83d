#include "data/batch_feed.hpp"

#include "core/launch.hpp"
#include "core/profile.hpp"
#include "kernels/token_groups.hpp"

#include <algorithm>

namespace kozero {

namespace {

template <class Memory>
std::span<std::int32_t> span_of(Buffer<std::int32_t, Memory> const& buffer) {
  return {buffer.data(), static_cast<std::size_t>(buffer.size())};
}

} // namespace

BatchFeed::BatchFeed(std::shared_ptr<TokenSource> tokens, BatchShape const& shape, std::int64_t context,
                     std::int64_t vocabulary, int rank, Ledger& ledger)
    : tokens_(std::move(tokens)), shape_(shape), context_(context), rank_(rank),
      buffers_(shape, context, vocabulary, ledger) {}

TokenRows BatchFeed::rows(std::int64_t m) {
  auto const count = static_cast<std::size_t>(shape_.micro * context_);
  auto const first = static_cast<std::size_t>(m) * count;
  return {context_, span_of(buffers_.inputs).subspan(first, count), span_of(buffers_.targets).subspan(first, count)};
}

std::int64_t BatchFeed::count_valid() const {
  auto const targets = span_of(buffers_.targets);
  return std::count_if(targets.begin(), targets.end(), [](std::int32_t target) { return target >= 0; });
}

std::int64_t BatchFeed::load_training(std::int64_t batch) {
  HostSpan const span("tokens");
  for (std::int64_t m = 0; m < shape_.accumulate; ++m) {
    tokens_->training_rows(shape_.first_sample(batch, m, rank_), rows(m));
  }
  return count_valid();
}

std::int64_t BatchFeed::load_evaluation(std::int64_t batch) {
  for (std::int64_t m = 0; m < shape_.accumulate; ++m) {
    tokens_->evaluation_rows(shape_.first_sample(batch, m, rank_), rows(m));
  }
  return count_valid();
}

std::int64_t BatchFeed::evaluation_batches(std::int64_t wanted) const {
  return kozero::evaluation_batches(tokens_->evaluation_windows(), shape_, wanted);
}

/// Inputs, targets and the groups of equal inputs of a micro-batch, side by side in `ids`. Returns how many groups.
std::int64_t BatchFeed::write(std::span<std::int32_t> ids, std::int64_t m) {
  HostSpan const span("tokens");
  auto const n = static_cast<std::size_t>(rows_a_micro_batch());
  TokenRows const batch = rows(m);
  std::ranges::copy(batch.inputs, ids.begin());
  std::ranges::copy(batch.targets, ids.begin() + rows_a_micro_batch());
  return group_tokens(batch.inputs, span_of(buffers_.token_counts), ids.subspan(2 * n, n + 1),
                      ids.subspan(3 * n + 1, n));
}

MicroBatch BatchFeed::upload(Lane const& lane, std::int64_t m) {
  buffers_.slots[turn_].used.record(lane); // by all that was launched for the micro-batch before
  turn_ = 1 - turn_;
  auto& slot = buffers_.slots[turn_];
  slot.copied.wait("tokens");
  std::int64_t const groups = write(span_of(slot.pinned), m);

  slot.used.hold_back(up_);
  {
    LaneSpan const span(up_, "tokens");
    copy(up_, slot.device.pointer(), slot.pinned.pointer(), slot.device.size());
  }
  slot.copied.record(up_);
  slot.copied.hold_back(lane);
  return on_device_of(slot, groups);
}

MicroBatch BatchFeed::on_device_of(BatchBuffers::MicroBatchSlot const& slot, std::int64_t groups) const {
  std::int64_t const n = rows_a_micro_batch();
  std::int32_t const* const ids = slot.device.data();
  return {make_vec(ids, n), make_vec(ids + n, n), {make_vec(ids + 2 * n, groups + 1), make_vec(ids + 3 * n + 1, n)}};
}

} // namespace kozero
