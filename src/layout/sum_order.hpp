#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

namespace kozero {

/// The order in which things that come one after another are added up.
///
/// | order     | of five                  | partial sums that are held |
/// |-----------|--------------------------|----------------------------|
/// | ascending | (((0 + 1) + 2) + 3) + 4  | 1                          |
/// | tree      | ((0 + 1) + (2 + 3)) + 4  | 2                          |
///
/// The tree is that of sums over ranks: neighbours in pairs, then pairs of pairs; a last one without a neighbour goes
/// up a level as it is. So it may be cut at any of its nodes, and whoever adds up what is below cannot be told from
/// the sum. A binary counter makes it: of the numbers that have come, a partial sum is held for each bit that is set.
enum class SumOrder { ascending, tree };

/// What becomes of an addend. It is added to the last `joins` of the `held` partial sums, the latest one first; with 0
/// it is a partial sum of its own. After the last addend one is left, which is the sum.
struct SumStep {
  int held = 0;
  int joins = 0;
};

/// Of addend `number`, from 0, of `count`.
constexpr SumStep sum_step(SumOrder order, std::int64_t number, std::int64_t count) {
  auto const bits = static_cast<std::uint64_t>(number);
  if (order == SumOrder::ascending) return number == 0 ? SumStep{0, 0} : SumStep{1, 1};
  int const held = std::popcount(bits);
  return {held, number + 1 == count ? held : std::countr_one(bits)};
}

/// The most partial sums that are held at once.
constexpr int most_partial_sums(SumOrder order, std::int64_t count) {
  int const levels = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count))) - 1;
  return order == SumOrder::ascending ? 1 : std::max(levels, 1);
}

} // namespace kozero
