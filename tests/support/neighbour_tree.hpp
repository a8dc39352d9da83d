#pragma once
// The tree of doc/numerics.md, written down independently of core/aligned_sum.hpp: level by level.

#include <vector>

namespace kozero::test {

/// ((0+1)+(2+3))+…, a last one without a neighbour as it is; 0 of none.
inline double sum_of_neighbours(std::vector<double> level) {
  if (level.empty()) return 0;
  while (level.size() > 1) {
    std::vector<double> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      next.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
    }
    level = next;
  }
  return level[0];
}

/// Σ x² of a block: columns of rows of eight, then the columns.
inline double sum_of_squares(std::vector<double> const& block) {
  std::vector<double> columns;
  for (std::size_t column = 0; column < 8; ++column) {
    std::vector<double> squares;
    for (std::size_t i = 0; i < block.size(); i += 8) {
      double const x = i + column < block.size() ? block[i + column] : 0.0;
      squares.push_back(x * x);
    }
    columns.push_back(sum_of_neighbours(squares));
  }
  return sum_of_neighbours(columns);
}

} // namespace kozero::test
