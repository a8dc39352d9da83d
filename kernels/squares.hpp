#pragma once
#include "core/aligned_sum.hpp"
#include "core/half.hpp"
#include "core/lane.hpp"
#include "kernels/aligned_tree.hpp"

namespace kozero {

/// The squares of a block, whose elements stand in rows of eight from its start on; the last row may be shorter. The
/// rows are the leaves and each column has a sum of its own, so that a vector holds neighbours in memory.
inline constexpr int square_columns = 8;
using SquareSum = AlignedSum<square_columns>;

/// Of nothing yet; for a block of so many elements.
inline SquareSum square_sum(std::int64_t block_size) {
  return SquareSum((block_size + square_columns - 1) / square_columns);
}

/// Σ x² of the block, of the sums of its columns: their tree of neighbours.
double sum_of_columns(SquareSum::Value const& sums);

/// The squares of elements begin … begin + n - 1 of a block, as the fewest nodes of its SquareSum that a lane's threads
/// make: `begin` is a multiple of eight, and n one too unless the block ends there.
///
///     SquareNodes<Lane> const nodes(begin, n, block_size);
///     nodes.compute(lane, sums, x);       // sums: [nodes.size()] in the lane's memory; x[0] is element `begin`
///     …                                   // sums to host memory
///     nodes.add_to(sum, host_sums);
template <class AnyLane>
class SquareNodes {
public:
  SquareNodes(std::int64_t begin, std::int64_t n, std::int64_t block_size);

  /// Doubles that it takes: eight for each 2048 elements on an accelerator, each 16384 on a host, and some at the ends.
  std::int64_t size() const { return cut_.count() * square_columns; }
  /// At the most, wherever n elements begin.
  static std::int64_t most(std::int64_t n);
  /// In double; the same bits on host and accelerator, as the squares are exact.
  template <class T>
  void compute(AnyLane const& lane, double* sums, T const* x) const;
  void add_to(SquareSum& sum, double const* sums) const;

private:
  std::int64_t first_row_;
  std::int64_t n_;
  detail::AlignedCut cut_;
};

} // namespace kozero
