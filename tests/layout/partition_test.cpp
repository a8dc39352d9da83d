#include "layout/partition.hpp"
#include "support/catch.hpp"

#include <vector>

using namespace kozero;

namespace {

// How many shards hold each element.
std::vector<int> owners_of(Partition const& partition) {
  std::vector<int> owners(static_cast<std::size_t>(partition.size()), 0);
  for (int r = 0; r < partition.ranks(); ++r) {
    Interval const shard = partition.shard(r);
    REQUIRE(0 <= shard.begin);
    REQUIRE(shard.begin <= shard.end);
    REQUIRE(shard.end <= partition.size());
    for (std::int64_t i = shard.begin; i < shard.end; ++i) {
      ++owners[static_cast<std::size_t>(i)];
      REQUIRE(partition.owner(i) == r);
    }
  }
  return owners;
}

void require_sound(std::int64_t size, int ranks) {
  INFO("size " << size << ", ranks " << ranks);
  Partition const partition(size, ranks);
  REQUIRE(partition.size() == size);
  REQUIRE(partition.ranks() == ranks);
  REQUIRE(owners_of(partition) == std::vector<int>(static_cast<std::size_t>(size), 1));
  REQUIRE(partition.capacity() >= size);
  REQUIRE(partition.capacity() == partition.shard_capacity() * ranks);
  // Padding stays below one alignment a rank, and nobody has more than the first.
  REQUIRE(partition.capacity() < size + ranks * (Partition::alignment + 1));
  for (int r = 0; r < ranks; ++r) {
    REQUIRE(partition.shard(r).size() <= partition.shard(0).size());
    REQUIRE(partition.shard(r).size() <= partition.shard_capacity());
    if (!partition.shard(r).empty()) {
      REQUIRE(partition.shard(r).begin % Partition::alignment == 0);
      REQUIRE(partition.shard(r).begin == r * partition.shard_capacity());
    }
  }
}

} // namespace

TEST_CASE("CASES 1: every element of arrays with nothing in some of them has one owner on any number of ranks") {
  std::vector<std::vector<std::int64_t>> const arrays = {{8, 0, 24}, {0}, {24, 0}, {0, 24}};
  for (auto const& sizes : arrays) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      for (std::int64_t const size : sizes) require_sound(size, ranks);
    }
  }
}

TEST_CASE("every element has one owner for all small sizes, fewer elements than ranks included") {
  for (std::int64_t size = 0; size <= 300; ++size) {
    for (int ranks = 1; ranks <= 16; ++ranks) require_sound(size, ranks);
  }
  for (int const ranks : {2, 4, 5, 8, 11}) require_sound(11697, ranks);
}

TEST_CASE("one rank owns everything, without padding") {
  Partition const partition(177, 1);
  CHECK(partition.shard(0) == Interval{0, 177});
  CHECK(partition.capacity() == 177);
}

TEST_CASE("shards of an uneven array by hand") {
  Partition const partition(177, 5); // 177 / 5 is 36 at the most, and 40 the next multiple of 8
  CHECK(partition.shard_capacity() == 40);
  CHECK(partition.capacity() == 200);
  CHECK(partition.shard(0) == Interval{0, 40});
  CHECK(partition.shard(4) == Interval{160, 177});
}

TEST_CASE("sizes beyond 32 bits") {
  std::int64_t const size = 3'000'000'001;
  Partition const partition(size, 7);
  CHECK(partition.shard(6).end == size);
  std::int64_t owned = 0;
  for (int r = 0; r < 7; ++r) owned += partition.shard(r).size();
  CHECK(owned == size);
}

TEST_CASE("the common part of two intervals") {
  CHECK(intersect({0, 10}, {5, 20}) == Interval{5, 10});
  CHECK(intersect({5, 20}, {0, 10}) == Interval{5, 10});
  CHECK(intersect({0, 10}, {2, 3}) == Interval{2, 3});
  CHECK(intersect({0, 10}, {10, 20}).empty());
  CHECK(intersect({0, 3}, {7, 9}).empty());
  CHECK(intersect({7, 9}, {0, 3}).size() == 0);
}
