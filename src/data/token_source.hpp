#pragma once
#include "data/batch_reader.hpp"
#include "data/sampler.hpp"
#include "io/corpus.hpp"

#include <cstdint>
#include <optional>

namespace kozero {

/// Where the windows of a training come from.
class TokenSource {
public:
  virtual ~TokenSource() = default;
  /// Fills the rows with the samples first_sample, first_sample + 1, … of the run, counted from 0.
  virtual void training_rows(std::int64_t first_sample, TokenRows const& rows) = 0;
  /// Fills the rows with the held-out windows first_window, … ; rows past the last one have no target.
  virtual void evaluation_rows(std::int64_t first_window, TokenRows const& rows) = 0;
  /// How many windows are held out.
  virtual std::int64_t evaluation_windows() const = 0;
};

/// The files of a deck, in the order that the seed gives.
class CorpusTokens final : public TokenSource {
public:
  CorpusTokens(Corpus const& corpus, std::int64_t seed) : corpus_(corpus), sampler_(seed, corpus.train.windows) {}

  void training_rows(std::int64_t first_sample, TokenRows const& rows) override {
    read_training_rows(corpus_.train, sampler_, first_sample, rows);
  }
  void evaluation_rows(std::int64_t first_window, TokenRows const& rows) override {
    read_evaluation_rows(corpus_.validation, first_window, rows);
  }
  std::int64_t evaluation_windows() const override { return corpus_.validation.windows; }

private:
  Corpus corpus_;
  Sampler sampler_;
};

} // namespace kozero
