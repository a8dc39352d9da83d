#pragma once
#include <cstddef>
#include <vector>

namespace kozero {

/// The blocks that a unit reads, by number, its own first. Block u belongs to unit u: its gradient is complete when
/// the backward pass of unit u ends. A tied head also reads the embedding's block, and adds to its gradient.
struct UnitUses {
  std::vector<int> forward;
  std::vector<int> backward; // empty where the gradient needs no parameter values
  std::vector<int> gradients;
};

/// Of each block: whether a unit other than its own reads it and adds to its gradient.
inline std::vector<bool> shared_blocks(std::vector<UnitUses> const& uses) {
  std::vector<bool> shared(uses.size(), false);
  for (std::size_t u = 0; u < uses.size(); ++u) {
    for (int const block : uses[u].forward) {
      if (static_cast<std::size_t>(block) != u) shared[block] = true;
    }
  }
  return shared;
}

enum class Phase { forward, backward };

struct Visit {
  int unit = 0;
  Phase phase = Phase::forward;
  friend bool operator==(Visit const&, Visit const&) = default;
};

/// In which order a micro-batch visits the units: 0 … n-1, and back when training.
class Visits {
public:
  Visits() = default;
  Visits(int units, int count) : units_(units), count_(count) {}
  int size() const { return count_; }
  Visit operator[](int i) const {
    return i < units_ ? Visit{i, Phase::forward} : Visit{2 * units_ - 1 - i, Phase::backward};
  }

private:
  int units_ = 0;
  int count_ = 0;
};

inline Visits training_visits(int units) { return {units, 2 * units}; }
inline Visits evaluation_visits(int units) { return {units, units}; }

} // namespace kozero
