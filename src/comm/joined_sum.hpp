#pragma once
#include "comm/ranks.hpp"
#include "core/aligned_sum.hpp"

namespace kozero {

/// The totals of sums of which each rank has added some of the leaves, and each leaf one rank: on every rank the bits
/// that one rank would have which had added them all. Collective; the ranks have as many sums, of as many leaves.
///
/// A rank sends what it and those that it has heard from cannot add up alone, once, and gets the same from log2(ranks)
/// others at the most: where ranks have their leaves in one interval each, about 2·log2(leaves) nodes a sum. With one
/// rank nothing is sent.
template <int width>
std::vector<typename AlignedSum<width>::Value> joined_totals(Ranks& ranks, std::vector<AlignedSum<width>> sums);

/// Of one sum.
template <int width>
typename AlignedSum<width>::Value joined_total(Ranks& ranks, AlignedSum<width> const& sum) {
  return joined_totals<width>(ranks, {sum})[0];
}

} // namespace kozero
