#pragma once
#include "data/sampler.hpp"
#include "io/corpus.hpp"

#include <cstdint>
#include <span>

namespace kozero {

/// A target that the loss leaves out.
inline constexpr std::int32_t no_target = -1;

/// A micro-batch in host memory: inputs and targets [micro, T], row-major.
struct TokenRows {
  std::int64_t context; // T
  std::span<std::int32_t> inputs;
  std::span<std::int32_t> targets;
};

/// Fills the rows with the training samples first_sample, first_sample + 1, …
void read_training_rows(TokenSet const& set, Sampler const& sampler, std::int64_t first_sample, TokenRows const& rows);

/// Fills the rows with the windows first_window, first_window + 1, … of the set. Rows past its end have token 0 as
/// input and no target, so that ranks may have different shares of the last batch and the sum of all ranks' losses is
/// that of the windows there are.
void read_evaluation_rows(TokenSet const& set, std::int64_t first_window, TokenRows const& rows);

} // namespace kozero
