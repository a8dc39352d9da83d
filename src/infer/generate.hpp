#pragma once
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "io/checkpoint.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace kozero {

struct GenerateOptions {
  std::int64_t tokens = 256; // to write
  double temperature = 1.0;  // 0: always the likeliest token
  std::int64_t top_k = 0;    // only the k likeliest; 0: all
  std::int64_t seed = 1;
};

/// The next token out of `logits`: its softmax at a temperature, cut to the k likeliest (ties by lower id), inverted at
/// `uniform` in (0, 1). Temperature 0 takes the likeliest, of several the lowest id.
std::int32_t sample_token(std::vector<float> const& logits, GenerateOptions const& options, double uniform);

/// Goes on after `prompt` with a checkpoint's model, in its compute type; hands each token to `write` as it is made.
/// The model sees the last `context` tokens. One process.
void generate(CheckpointReader const& checkpoint, Config const& config, std::vector<std::int32_t> prompt,
              GenerateOptions const& options, std::function<void(std::int32_t)> const& write, Ledger& ledger);

} // namespace kozero
