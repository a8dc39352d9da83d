#pragma once
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "data/batch_buffers.hpp"
#include "data/batch_reader.hpp"
#include "data/batch_shape.hpp"
#include "data/micro_batches.hpp"
#include "data/sampler.hpp"
#include "io/corpus.hpp"

namespace kozero {

/// This rank's tokens: reads the micro-batches of a batch into host memory and hands them to the device one by one.
///
///     std::int64_t valid = feed.load_training(batch);        // targets of this rank that count
///     for m = 0 … accumulate-1:  MicroBatch b = feed.upload(lane, m);
class BatchFeed final : public MicroBatches {
public:
  BatchFeed(Corpus const& corpus, std::int64_t seed, BatchShape const& shape, std::int64_t context, int rank,
            std::int64_t vocabulary, Ledger& ledger);

  /// Batch `batch` of the run, counted from 0. Returns how many targets of this rank are valid.
  std::int64_t load_training(std::int64_t batch);
  /// Batch `batch` of an evaluation.
  std::int64_t load_evaluation(std::int64_t batch);

  std::int64_t micro_batches() const override { return shape_.accumulate; }
  /// Of the batch that was loaded last.
  MicroBatch upload(Lane const& lane, std::int64_t m) override;

private:
  TokenRows rows(std::int64_t m);
  std::int64_t count_valid() const;

  Corpus corpus_;
  Sampler sampler_;
  BatchShape shape_;
  std::int64_t context_;
  int rank_;
  std::int64_t vocabulary_;
  BatchBuffers buffers_;
};

} // namespace kozero
