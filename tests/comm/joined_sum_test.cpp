// Sums whose leaves the ranks share, against the same tree on one rank.
#include "comm/joined_sum.hpp"

#include "comm/rank_values.hpp"
#include "support/neighbour_tree.hpp"
#include "support/world.hpp"

#include <bit>

using namespace kozero;
using namespace kozero::test;

namespace {

std::vector<double> addends(std::int64_t n, std::uint32_t stream) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(addend<double>(stream, 0, i));
  return values;
}

template <int width>
using Values = std::vector<typename AlignedSum<width>::Value>;

template <int width>
Values<width> joined_totals(Ranks& ranks, std::vector<AlignedSum<width>> sums) {
  SumJoiner<width>().join(ranks, sums);
  Values<width> totals;
  for (auto const& sum : sums) totals.push_back(sum.total());
  return totals;
}

template <int width>
typename AlignedSum<width>::Value joined_total(Ranks& ranks, AlignedSum<width> const& sum) {
  return joined_totals<width>(ranks, {sum})[0];
}

constexpr std::int64_t counts[] = {0, 1, 2, 7, 8, 9, 100, 1003};

} // namespace

TEST_CASE_METHOD(World, "leaves in one interval a rank have the bits of one rank") {
  std::vector<AlignedSum<1>> sums;
  std::vector<double> expected;
  for (std::int64_t const n : counts) {
    auto const values = addends(n, static_cast<std::uint32_t>(n));
    AlignedSum<1> sum(n);
    Interval const mine = Partition(n, world.size()).shard(world.rank());
    for (std::int64_t i = mine.begin; i < mine.end; ++i) sum.add({0, i}, {values[static_cast<std::size_t>(i)]});
    sums.push_back(sum);
    expected.push_back(sum_of_neighbours(values));
  }
  auto const totals = joined_totals(world.ranks, sums);
  REQUIRE(totals.size() == expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s) CHECK(totals[s][0] == expected[s]);
}

TEST_CASE_METHOD(World, "windows that ranks have in turns, as batches are dealt, have the bits of one rank") {
  for (std::int64_t const micro : {1, 3}) {
    std::int64_t const accumulate = 4;
    auto const values = addends(micro * accumulate * world.size(), 5);
    AlignedSum<1> sum(static_cast<std::int64_t>(values.size()));
    for (std::int64_t m = 0; m < accumulate; ++m) {
      std::int64_t const first = (m * world.size() + world.rank()) * micro;
      for (std::int64_t i = first; i < first + micro; ++i) sum.add({0, i}, {values[static_cast<std::size_t>(i)]});
    }
    CHECK(joined_total(world.ranks, sum)[0] == sum_of_neighbours(values));
  }
}

TEST_CASE_METHOD(World, "eight sums at once are joined as one is, and one rank sends nothing") {
  std::int64_t const n = 333;
  AlignedSum<8> sum(n);
  for (std::int64_t i = 0; i < n; ++i) {
    if (i / 10 % world.size() != world.rank()) continue;
    AlignedSum<8>::Value value;
    for (int j = 0; j < 8; ++j) value[j] = addend<double>(6, j, i);
    sum.add({0, i}, value);
  }
  world.ranks.traffic() = TrafficLedger();
  auto const total = joined_total(world.ranks, sum);
  for (int j = 0; j < 8; ++j) {
    std::vector<double> column;
    for (std::int64_t i = 0; i < n; ++i) column.push_back(addend<double>(6, j, i));
    CHECK(total[j] == sum_of_neighbours(column));
  }
  CHECK((world.ranks.traffic()[Traffic::control].bytes == 0) == (world.size() == 1));
}

TEST_CASE_METHOD(World, "what a rank gets does not grow with the ranks, but with their tree's height") {
  std::int64_t const n = 1003; // eight of its bits are set: the nodes of all leaves
  AlignedSum<8> sum(n);
  Interval const mine = Partition(n, world.size()).shard(world.rank());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) sum.add({0, i}, {});
  world.ranks.traffic() = TrafficLedger();
  joined_total(world.ranks, sum);
  constexpr auto node_bytes = static_cast<std::int64_t>(sizeof(AlignedSum<8>::NodeSum));
  std::int64_t const counts_bytes = 2 * sizeof(std::int64_t); // of the message's bytes and of the sum's nodes
  std::int64_t const bytes = world.ranks.traffic()[Traffic::control].bytes;
  if (world.rank() % 2 == 1) CHECK(bytes == counts_bytes + 8 * node_bytes);
  auto const height = static_cast<std::int64_t>(std::bit_width(static_cast<unsigned>(world.size() - 1)));
  std::int64_t const most_nodes = 2 * 10; // of an interval of 1003 leaves
  CHECK(bytes <= (height + 1) * (counts_bytes + most_nodes * node_bytes));
}

TEST_CASE_METHOD(World, "a leaf that no rank has is an error on all") {
  AlignedSum<1> sum(world.size() + 1);
  sum.add({0, world.rank()}, {1});
  CHECK_THROWS_AS(joined_total(world.ranks, sum), Error);
}
