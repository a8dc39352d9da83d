#pragma once
#include <cstdint>
#include <span>

namespace kozero {

/// Groups of the most that n tokens of a vocabulary can make.
constexpr std::int64_t max_token_groups(std::int64_t n, std::int64_t vocabulary) {
  return n < vocabulary ? n : vocabulary;
}

/// Makes kernels' TokenGroups, on the host, by a counting sort: groups in ascending order of their token, positions
/// ascending in each. `starts` has room for max_token_groups + 1 entries, `positions` for as many as there are tokens,
/// `scratch` [vocabulary]. Returns the number of groups g; starts[0 … g] is what counts. Throws if a token is not in
/// [0, vocabulary).
std::int64_t group_tokens(std::span<std::int32_t const> tokens, std::span<std::int32_t> scratch,
                          std::span<std::int32_t> starts, std::span<std::int32_t> positions);

} // namespace kozero
