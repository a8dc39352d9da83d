#pragma once
#include "core/aligned_sum.hpp"
#include "core/half.hpp"
#include "core/lane.hpp"

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

/// Adds x² of elements begin … begin + n - 1 of a block, in double; x[0] is element `begin`, a multiple of eight, and
/// n one too unless the block ends there. The same bits on host and accelerator, as the squares are exact. Waits for
/// the lane; meanwhile it has allocated eight doubles for each 16384 elements, on an accelerator 2048.
template <class Exec, class T>
void add_squares(BasicLane<Exec> const& lane, T const* x, std::int64_t begin, std::int64_t n, SquareSum& sum);

} // namespace kozero
