#pragma once
#include <algorithm>
#include <vector>

namespace kozero {

/// The blocks that a unit reads, by number, its own first. Block u belongs to unit u: its gradient is complete when
/// the backward pass of unit u ends. A tied head also reads the embedding's block, and adds to its gradient.
struct UnitUses {
  std::vector<int> forward;
  std::vector<int> backward; // empty where the gradient needs no parameter values
  std::vector<int> gradients;
};

/// Whether a unit other than its own reads a block and adds to its gradient.
inline bool is_shared(std::vector<UnitUses> const& uses, int block) {
  for (int u = 0; u < static_cast<int>(uses.size()); ++u) {
    auto const& read = uses[u].forward;
    if (u != block && std::find(read.begin(), read.end(), block) != read.end()) return true;
  }
  return false;
}

enum class Phase { forward, backward };

struct Visit {
  int unit = 0;
  Phase phase = Phase::forward;
  friend bool operator==(Visit const&, Visit const&) = default;
};

/// In which order a micro-batch visits the units: 0 … n-1, and back when training.
inline std::vector<Visit> training_visits(int units) {
  std::vector<Visit> visits;
  for (int u = 0; u < units; ++u) visits.push_back({u, Phase::forward});
  for (int u = units - 1; u >= 0; --u) visits.push_back({u, Phase::backward});
  return visits;
}

inline std::vector<Visit> evaluation_visits(int units) {
  std::vector<Visit> visits;
  for (int u = 0; u < units; ++u) visits.push_back({u, Phase::forward});
  return visits;
}

} // namespace kozero
