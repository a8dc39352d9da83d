#pragma once
#include "comm/ranks.hpp"
#include "core/aligned_sum.hpp"

#include <span>
#include <string>
#include <vector>

namespace kozero {

/// Completes sums of which each rank has added some of the leaves, and each leaf one rank: on every rank they have the
/// bits then that one rank would have which had added them all.
///
///     SumJoiner<1> joiner;                 // keeps its memory from one time to the next
///     joiner.join(ranks, sums);
///     sums[0].total();
///
/// A rank sends what it and those that it has heard from cannot add up alone, once, and gets the same from log2(ranks)
/// others at the most: where ranks have their leaves in one interval each, about 2·log2(leaves) nodes a sum. With one
/// rank nothing is sent.
template <int width>
class SumJoiner {
public:
  /// Collective; the ranks have as many sums, of as many leaves.
  void join(Ranks& ranks, std::span<AlignedSum<width>> sums);

private:
  void write(std::span<AlignedSum<width> const> sums);
  void add(std::span<AlignedSum<width>> sums);
  void send(Ranks& ranks, int to) const;
  void receive(Ranks& ranks, int from);

  std::string message_;
  std::vector<typename AlignedSum<width>::NodeSum> nodes_;
};

} // namespace kozero
