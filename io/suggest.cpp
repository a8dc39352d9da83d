#include "io/suggest.hpp"

#include <algorithm>
#include <cstddef>

namespace kozero {

namespace {

/// Insertions, deletions, replacements and swaps of neighbours between a and b: optimal string alignment.
std::size_t distance(std::string const& a, std::string const& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t const replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      bool const swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

bool contains(std::string const& long_word, std::string const& short_word) {
  return short_word.size() >= 3 && long_word.find(short_word) != std::string::npos;
}

} // namespace

std::string nearest_word(std::string const& word, std::vector<std::string> const& candidates) {
  if (word.size() > 100) return {};
  std::string best;
  std::size_t best_distance = 0;
  for (auto const& candidate : candidates) {
    std::size_t const edits = distance(word, candidate);
    bool const near = edits < candidate.size() && edits <= std::max<std::size_t>(1, word.size() / 3);
    if (!near && !contains(word, candidate) && !contains(candidate, word)) continue;
    if (!best.empty() && edits >= best_distance) continue;
    best = candidate;
    best_distance = edits;
  }
  return best;
}

} // namespace kozero
