#include "kernels/token_groups.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace kozero {

std::int64_t group_tokens(std::span<std::int32_t const> tokens, std::span<std::int32_t> scratch,
                          std::span<std::int32_t> starts, std::span<std::int32_t> positions) {
  std::int64_t const n = std::ssize(tokens);
  std::int64_t const vocabulary = std::ssize(scratch);
  KOZERO_ASSERT(std::ssize(positions) >= n && std::ssize(starts) >= max_token_groups(n, vocabulary) + 1);
  std::span<std::int32_t> const next = scratch;
  std::ranges::fill(next, 0); // how often a token occurs
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t const token = tokens[i];
    KOZERO_REQUIRE(token >= 0 && token < vocabulary,
                   "token {} of a micro-batch is {} (the vocabulary has {}); check the data file's tokenizer against "
                   "model.vocabulary",
                   i, token, vocabulary);
    ++next[token];
  }
  std::int64_t groups = 0;
  std::int32_t begin = 0;
  for (std::int32_t& count : next) { // from here on: where its next position goes
    if (count == 0) continue;
    starts[groups++] = begin;
    std::int32_t const end = begin + count;
    count = begin;
    begin = end;
  }
  starts[groups] = begin;
  for (std::int64_t i = 0; i < n; ++i) positions[next[tokens[i]]++] = static_cast<std::int32_t>(i);
  return groups;
}

} // namespace kozero
