#include "data/batch_feed.hpp"

#include "kernels/token_groups.hpp"

#include <algorithm>

namespace kozero {

namespace {

/// Host values to the front of a device buffer, in the lane's order; the host array may change when it returns.
Vec<std::int32_t const> copy_to_device(Lane const& lane, DeviceBuffer<std::int32_t> const& to,
                                       std::span<std::int32_t const> from) {
  Kokkos::View<std::int32_t const*, HostMemory, Unmanaged> const host(from.data(), from.size());
  Vec<std::int32_t> const device(to.data(), from.size());
  Kokkos::deep_copy(lane.exec(), device, host);
  lane.fence();
  return device;
}

std::span<std::int32_t> span_of(HostBuffer<std::int32_t> const& buffer) {
  return {buffer.data(), static_cast<std::size_t>(buffer.size())};
}

} // namespace

BatchFeed::BatchFeed(std::shared_ptr<TokenSource> tokens, BatchShape const& shape, std::int64_t context,
                     std::int64_t vocabulary, int rank, Ledger& ledger)
    : tokens_(std::move(tokens)), shape_(shape), context_(context), vocabulary_(vocabulary), rank_(rank),
      buffers_(shape, context, ledger) {}

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

MicroBatch BatchFeed::upload(Lane const& lane, std::int64_t m) {
  TokenRows const batch = rows(m);
  std::int64_t const groups =
      group_tokens(batch.inputs, vocabulary_, span_of(buffers_.starts), span_of(buffers_.positions));
  auto const starts = span_of(buffers_.starts).first(static_cast<std::size_t>(groups + 1));
  return {copy_to_device(lane, buffers_.device_inputs, batch.inputs),
          copy_to_device(lane, buffers_.device_targets, batch.targets),
          {copy_to_device(lane, buffers_.device_starts, starts),
           copy_to_device(lane, buffers_.device_positions, span_of(buffers_.positions))}};
}

} // namespace kozero
