#include "core/aligned_sum.hpp"

#include "core/rng.hpp"
#include "support/catch.hpp"
#include "support/neighbour_tree.hpp"

#include <cmath>

using namespace kozero;
using namespace kozero::test;

namespace {

/// Of magnitudes so different that another order gives other bits.
std::vector<double> addends(std::int64_t n, std::uint32_t stream) {
  std::vector<double> values;
  RngKey const key{11, RngPurpose::shuffle, stream, 0};
  for (std::int64_t i = 0; i < n; ++i) {
    auto const index = static_cast<std::uint64_t>(i);
    values.push_back(std::ldexp(random_uniform(key, index) - 0.5, static_cast<int>(random_bits(key, index)[3] % 24)));
  }
  return values;
}

/// One of several who share the leaves: adds begin … end-1, one at a time.
void add_leaves(AlignedSum<1>& sum, std::vector<double> const& values, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) sum.add({0, i}, {values[static_cast<std::size_t>(i)]});
}

void add_nodes(AlignedSum<1>& sum, AlignedSum<1> const& other) {
  for (auto const& [node, value] : other.nodes()) sum.add(node, value);
}

constexpr std::int64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 31, 33, 100, 127, 128, 129};

} // namespace

TEST_CASE("an aligned sum is the tree of neighbours") {
  for (std::int64_t const n : counts) {
    auto const values = addends(n, 1);
    AlignedSum<1> sum(n);
    add_leaves(sum, values, 0, n);
    INFO(n << " leaves");
    CHECK(sum.total()[0] == sum_of_neighbours(values));
    CHECK(neighbour_sum(values) == sum_of_neighbours(values));
    long double exact = 0;
    long double size = 0;
    for (double const value : values) {
      exact += value;
      size += std::fabs(value);
    }
    CHECK(std::fabs(static_cast<double>(exact) - sum.total()[0]) <= 1e-15 * static_cast<double>(size));
  }
}

TEST_CASE("leaves that three share, however they are cut, have the bits of one who has all") {
  for (std::int64_t const n : counts) {
    auto const values = addends(n, 2);
    for (std::int64_t first = 0; first <= n; ++first) {
      for (std::int64_t second = first; second <= n; second += 1 + n / 20) {
        AlignedSum<1> outer(n), inner(n), whole(n); // one has both ends, the other what is between them
        add_leaves(outer, values, 0, first);
        add_leaves(outer, values, second, n);
        add_leaves(inner, values, first, second);
        AlignedSum<1> head(n), tail(n);
        for (auto const& [node, value] : outer.nodes()) (node.end() <= first ? head : tail).add(node, value);
        add_nodes(whole, head);
        add_nodes(whole, inner);
        add_nodes(whole, tail);
        CAPTURE(n, first, second);
        CHECK(whole.total()[0] == sum_of_neighbours(values));
      }
    }
  }
}

TEST_CASE("an interval becomes the fewest nodes") {
  std::int64_t const n = 1000;
  auto const values = addends(n, 3);
  for (std::int64_t const begin : {0, 1, 255, 256, 511}) {
    for (std::int64_t const end : {512, 513, 999, 1000}) {
      AlignedSum<1> sum(n);
      add_leaves(sum, values, begin, end);
      CAPTURE(begin, end);
      CHECK(sum.nodes().size() <= 2 * 9);
      for (std::size_t p = 1; p < sum.nodes().size(); ++p) {
        CHECK(sum.nodes()[p - 1].node.end() == sum.nodes()[p].node.begin());
        CHECK_FALSE(sum.nodes()[p - 1].node.is_left_of(sum.nodes()[p].node));
      }
    }
  }
}

TEST_CASE("each of several values has its own sum") {
  auto const a = addends(77, 4);
  auto const b = addends(77, 5);
  AlignedSum<2> sum(77);
  for (std::size_t i = 0; i < a.size(); ++i) sum.add({0, static_cast<std::int64_t>(i)}, {a[i], b[i]});
  CHECK(sum.total() == AlignedSum<2>::Value{sum_of_neighbours(a), sum_of_neighbours(b)});
}

TEST_CASE("a leaf that is missing, comes twice or does not exist is refused") {
  AlignedSum<1> sum(5);
  CHECK_THROWS_AS(sum.total(), Error);
  sum.add({0, 0}, {1});
  sum.add({1, 1}, {1}); // leaves 2 and 3
  CHECK_THROWS_AS(sum.add({0, 3}, {1}), Error);
  CHECK_THROWS_AS(sum.add({1, 2}, {1}), Error);
  sum.add({0, 4}, {1});
  CHECK_THROWS_AS(sum.total(), Error); // leaf 1
  AlignedSum<1> end(5);
  end.add({2, 0}, {1});
  CHECK_THROWS_AS(end.total(), Error); // leaf 4
}
