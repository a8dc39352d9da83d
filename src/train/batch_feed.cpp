#include "train/batch_feed.hpp"

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

DeviceBuffer<std::int32_t> device_ids(Ledger& ledger, char const* label, std::int64_t count) {
  return {ledger, Category::workspace, label, count};
}

HostBuffer<std::int32_t> host_ids(Ledger& ledger, char const* label, std::int64_t count) {
  return {ledger, Category::workspace, label, count};
}

std::span<std::int32_t> span_of(HostBuffer<std::int32_t> const& buffer) {
  return {buffer.data(), static_cast<std::size_t>(buffer.size())};
}

} // namespace

BatchFeed::BatchFeed(Corpus const& corpus, std::int64_t seed, BatchShape const& shape, std::int64_t context, int rank,
                     std::int64_t vocabulary, Ledger& ledger)
    : corpus_(corpus), sampler_(seed, corpus.train.windows), shape_(shape), context_(context), rank_(rank),
      vocabulary_(vocabulary), inputs_(host_ids(ledger, "inputs", shape.accumulate * shape.micro * context)),
      targets_(host_ids(ledger, "targets", shape.accumulate * shape.micro * context)),
      starts_(host_ids(ledger, "group starts", shape.micro * context + 1)),
      positions_(host_ids(ledger, "group positions", shape.micro * context)),
      device_tokens_(device_ids(ledger, "tokens", shape.micro * context)),
      device_targets_(device_ids(ledger, "targets", shape.micro * context)),
      device_starts_(device_ids(ledger, "group starts", shape.micro * context + 1)),
      device_positions_(device_ids(ledger, "group positions", shape.micro * context)) {}

TokenRows BatchFeed::rows(std::int64_t m) {
  auto const count = static_cast<std::size_t>(shape_.micro * context_);
  auto const first = static_cast<std::size_t>(m) * count;
  return {context_, span_of(inputs_).subspan(first, count), span_of(targets_).subspan(first, count)};
}

std::int64_t BatchFeed::count_valid() const {
  auto const targets = span_of(targets_);
  return std::count_if(targets.begin(), targets.end(), [](std::int32_t target) { return target >= 0; });
}

std::int64_t BatchFeed::load_training(std::int64_t batch) {
  for (std::int64_t m = 0; m < shape_.accumulate; ++m) {
    read_training_rows(corpus_.train, sampler_, shape_.first_sample(batch, m, rank_), rows(m));
  }
  return count_valid();
}

std::int64_t BatchFeed::load_evaluation(std::int64_t batch) {
  for (std::int64_t m = 0; m < shape_.accumulate; ++m) {
    read_evaluation_rows(corpus_.validation, shape_.first_sample(batch, m, rank_), rows(m));
  }
  return count_valid();
}

MicroBatch BatchFeed::upload(Lane const& lane, std::int64_t m) {
  TokenRows const batch = rows(m);
  std::int64_t const groups = group_tokens(batch.inputs, vocabulary_, span_of(starts_), span_of(positions_));
  auto const starts = span_of(starts_).first(static_cast<std::size_t>(groups + 1));
  return {copy_to_device(lane, device_tokens_, batch.inputs),
          copy_to_device(lane, device_targets_, batch.targets),
          {copy_to_device(lane, device_starts_, starts), copy_to_device(lane, device_positions_, span_of(positions_))}};
}

} // namespace kozero
