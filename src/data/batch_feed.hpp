#pragma once
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "data/batch_buffers.hpp"
#include "data/batch_shape.hpp"
#include "data/token_source.hpp"
#include "model/unit.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace kozero {

/// This rank's tokens: reads the micro-batches of a batch into host memory and hands them to the device one by one.
///
///     std::int64_t valid = feed.load_training(batch);        // targets of this rank that count
///     for m = 0 … accumulate-1:  MicroBatch b = feed.upload(lane, m);
class BatchFeed {
public:
  /// A plan has no tokens; then nothing may be loaded.
  BatchFeed(std::shared_ptr<TokenSource> tokens, BatchShape const& shape, std::int64_t context, std::int64_t vocabulary,
            int rank, Ledger& ledger);

  /// Batch `batch` of the run, counted from 0. Returns how many targets of this rank are valid.
  std::int64_t load_training(std::int64_t batch);
  /// Batch `batch` of an evaluation.
  std::int64_t load_evaluation(std::int64_t batch);
  /// Of those that an evaluation goes through, at most `wanted`.
  std::int64_t evaluation_batches(std::int64_t wanted) const;

  BatchShape const& shape() const { return shape_; }
  /// micro · T
  std::int64_t rows_a_micro_batch() const { return shape_.micro * context_; }
  /// Micro-batch m of the batch that was loaded last, on the device, where the one before it stays meanwhile. The host
  /// does not wait for it; the lane does.
  MicroBatch upload(Lane const& lane, std::int64_t m);
  /// The number of micro-batch m's first window among those of the batch, over all ranks.
  std::int64_t first_window(std::int64_t m) const { return shape_.first_sample(0, m, rank_); }

private:
  TokenRows rows(std::int64_t m);
  std::int64_t count_valid() const;
  std::int64_t write(std::span<std::int32_t> ids, std::int64_t m);
  MicroBatch on_device_of(BatchBuffers::MicroBatchSlot const& slot, std::int64_t groups) const;

  std::shared_ptr<TokenSource> tokens_;
  BatchShape shape_;
  std::int64_t context_;
  int rank_;
  BatchBuffers buffers_;
  LazyLane up_{"tokens"};
  int turn_ = 0; // the slot of the micro-batch that was uploaded last
};

} // namespace kozero
