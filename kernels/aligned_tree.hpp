#pragma once
// The tree of core/aligned_sum.hpp inside of kernels.

#include "core/aligned_sum.hpp"
#include "core/kokkos.hpp"

namespace kozero::detail {

/// Leaves begin … end-1 as the fewest nodes of at most 2^top leaves, in order; a thread finds its own.
class AlignedCut {
public:
  AlignedCut(std::int64_t begin, std::int64_t end, int top) : top_(top), begin_(begin), end_(end) {
    std::int64_t const tile = std::int64_t{1} << top;
    first_ = (begin + tile - 1) / tile * tile;
    if (first_ > end) first_ = end; // all in one tile
    last_ = end / tile * tile;
    if (last_ < first_) last_ = first_;
    before_ = count_between(begin_, first_);
    count_ = before_ + ((last_ - first_) >> top_) + count_between(last_, end_);
  }

  std::int64_t count() const { return count_; }

  KOKKOS_FORCEINLINE_FUNCTION AlignedNode node(std::int64_t number) const {
    if (number < before_) return walk(begin_, first_, number);
    std::int64_t const tile = number - before_;
    std::int64_t const tiles = (last_ - first_) >> top_;
    if (tile < tiles) return {top_, (first_ >> top_) + tile};
    return walk(last_, end_, tile - tiles);
  }

private:
  /// The largest node that starts at `at` and does not pass `end`.
  KOKKOS_FORCEINLINE_FUNCTION AlignedNode largest(std::int64_t at, std::int64_t end) const {
    int level = 0;
    while (level < top_ && at % (std::int64_t{2} << level) == 0 && at + (std::int64_t{2} << level) <= end) ++level;
    return {level, at >> level};
  }
  KOKKOS_FORCEINLINE_FUNCTION AlignedNode walk(std::int64_t at, std::int64_t end, std::int64_t steps) const {
    AlignedNode node = largest(at, end);
    for (; steps > 0; --steps) {
      at += std::int64_t{1} << node.level;
      node = largest(at, end);
    }
    return node;
  }
  std::int64_t count_between(std::int64_t at, std::int64_t end) const {
    std::int64_t count = 0;
    for (; at < end; ++count) at = largest(at, end).end();
    return count;
  }

  int top_;
  std::int64_t begin_, first_, last_, end_; // nodes of 2^top leaves are from first to last
  std::int64_t before_ = 0;                 // nodes before these
  std::int64_t count_ = 0;
};

/// The sums of nodes that come in order from leaf 0 on; of each level it keeps the one that waits for its neighbour.
template <int width, int levels>
class BinaryCounter {
public:
  /// 2^level leaves from `at` on. `value` becomes that of the largest node which they complete.
  KOKKOS_FORCEINLINE_FUNCTION void add(std::int64_t at, int level, double (&value)[width]) {
    int k = level;
    for (; (at >> k) % 2 == 1; ++k) {
      for (int j = 0; j < width; ++j) value[j] = waiting_[k][j] + value[j];
    }
    for (int j = 0; j < width; ++j) waiting_[k][j] = value[j];
  }

  /// Sum j of all, when leaves 0 … n-1 were added.
  KOKKOS_FORCEINLINE_FUNCTION double total(std::int64_t n, int j) const {
    double sum = 0;
    bool empty = true;
    for (int k = 0; k < levels && n >> k > 0; ++k) {
      if ((n >> k) % 2 == 0) continue;
      sum = empty ? waiting_[k][j] : waiting_[k][j] + sum;
      empty = false;
    }
    return sum;
  }

private:
  double waiting_[levels][width] = {};
};

/// Σ term(i), i = 0 … n-1 < 2^levels, as AlignedSum adds.
template <int levels, class Term>
KOKKOS_FORCEINLINE_FUNCTION double neighbour_sum(std::int64_t n, Term const& term) {
  BinaryCounter<1, levels> counter;
  for (std::int64_t i = 0; i < n; ++i) {
    double value[1] = {term(i)};
    counter.add(i, 0, value);
  }
  return counter.total(n, 0);
}

} // namespace kozero::detail
