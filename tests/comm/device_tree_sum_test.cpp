#include "comm/device_tree_sum.hpp"
#include "comm/rank_values.hpp"
#include "comm/tree_sum.hpp"

#include <numeric>

using namespace kozero;
using namespace kozero::test;

namespace {

/// Addends of `ranks` ranks as a collective has them: in pieces side by side, but the own one apart.
template <class T>
struct Pieces {
  Pieces(int its_ranks, int its_own, std::int64_t its_n, std::int64_t its_distance, std::int64_t offset = 0)
      : ranks(its_ranks), own(its_own), n(its_n), distance(its_distance), begin(offset),
        incoming(std::vector<T>(static_cast<std::size_t>(ranks * distance + offset), static_cast<T>(-5))),
        mine(std::vector<T>(static_cast<std::size_t>(n + offset), static_cast<T>(-5))) {
    std::vector<T> all = incoming.get();
    std::vector<T> of_own = mine.get();
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::int64_t i = 0; i < n; ++i) {
        T const value = addend<T>(1, rank, i);
        if (rank == own) of_own[static_cast<std::size_t>(begin + i)] = value;
        if (rank != own) all[static_cast<std::size_t>(begin + rank * distance + i)] = value;
      }
    }
    incoming.set(all);
    mine.set(of_own);
  }
  DeviceAddends addends() const {
    return {.first = incoming.data() + begin,
            .distance_bytes = distance * static_cast<std::int64_t>(sizeof(T)),
            .count = ranks,
            .own = own,
            .own_place = mine.data() + begin};
  }

  int ranks, own;
  std::int64_t n, distance, begin;
  DeviceArray<T> incoming, mine;
};

template <class T>
void require_sums(Pieces<T> const& pieces) {
  device_tree_sum(Lane(), dtype_of<T>, pieces.addends(), dtype_of<T>, pieces.mine.data() + pieces.begin, pieces.n);
  auto const sums = pieces.mine.get();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < pieces.n; ++i) {
    wrong += !same_bits(sums[static_cast<std::size_t>(pieces.begin + i)], sum_over_ranks<T>(1, pieces.ranks, i));
  }
  REQUIRE(wrong == 0);
  for (std::int64_t i = 0; i < pieces.begin; ++i) {
    CHECK(same_bits(sums[static_cast<std::size_t>(i)], static_cast<T>(-5)));
  }
}

} // namespace

TEMPLATE_TEST_CASE("sums on a device are the tree's, for any number of ranks, into the own addend", "", float, bf16,
                   fp16, double, std::int64_t, std::int32_t) {
  std::vector<int> counts(20);
  std::iota(counts.begin(), counts.end(), 1);
  for (int const more : {31, 32, 33, 63, 64, 65, 100, 1000, 4095, 4096}) counts.push_back(more);
  for (int const ranks : counts) {
    for (int const own : {0, ranks / 2, ranks - 1}) {
      CAPTURE(ranks, own);
      require_sums(Pieces<TestType>(ranks, own, 37, 40));
    }
  }
}

TEMPLATE_TEST_CASE("sums on a device of any length, wherever the addends begin", "", float, bf16, double) {
  for (std::int64_t const n : {0, 1, 7, 8, 9, 64, 1001}) {
    for (std::int64_t const begin : {0, 1, 3}) {
      for (std::int64_t const distance : {n, n + 1, (n + 7) / 8 * 8 + 8}) {
        CAPTURE(n, begin, distance);
        require_sums(Pieces<TestType>(5, 3, n, distance, begin));
      }
    }
  }
}

TEMPLATE_TEST_CASE("sums of four ranks each, in fp32, add up to the sum of sixteen", "", bf16, fp16) {
  std::int64_t const n = 203;
  std::int64_t const distance = 208;
  DeviceArray<float> const parts(4 * distance);
  Pieces<TestType> const all(16, 5, n, distance);
  for (int part = 0; part < 4; ++part) {
    DeviceAddends addends = all.addends();
    addends.first = all.incoming.data() + 4 * part * distance;
    addends.count = 4;
    addends.own = 0;
    addends.own_place = addends.first;
    if (part == 1) {
      addends.own = 1;
      addends.own_place = all.mine.data();
    }
    device_tree_sum(Lane(), dtype_of<TestType>, addends, DType::f32, parts.data() + part * distance, n);
  }
  DeviceAddends const sums{.first = parts.data(),
                           .distance_bytes = distance * 4,
                           .count = 4,
                           .own = 2,
                           .own_place = parts.data() + 2 * distance};
  device_tree_sum(Lane(), DType::f32, sums, dtype_of<TestType>, all.mine.data(), n);
  auto const found = all.mine.get();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    wrong += !same_bits(found[static_cast<std::size_t>(i)], sum_over_ranks<TestType>(1, 16, i));
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("a series of sums is what each is alone", "", float, bf16, double) {
  std::int64_t const n = 24;
  std::int64_t const count = 3;
  Pieces<TestType> const all(5, 1, n * count, n * count);
  DeviceArray<TestType> const out(count * (n + 8));
  SumSeries const series{.count = count,
                         .addends_bytes = n * static_cast<std::int64_t>(sizeof(TestType)),
                         .own_bytes = n * static_cast<std::int64_t>(sizeof(TestType)),
                         .out_bytes = (n + 8) * static_cast<std::int64_t>(sizeof(TestType))};
  device_tree_sum(Lane(), dtype_of<TestType>, all.addends(), dtype_of<TestType>, out.data(), n, series);
  auto const sums = out.get();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < n * count; ++i) {
    wrong += !same_bits(sums[static_cast<std::size_t>(i / n * (n + 8) + i % n)], sum_over_ranks<TestType>(1, 5, i));
  }
  CHECK(wrong == 0);
  CHECK(same_bits(sums[static_cast<std::size_t>(n)], TestType{})); // between two
}

TEST_CASE("what has no sum over ranks is refused") {
  DeviceArray<float> const x(8);
  DeviceAddends const addends{.first = x.data(), .distance_bytes = 4, .count = 2, .own = 0, .own_place = x.data()};
  CHECK_THROWS_AS(device_tree_sum(Lane(), DType::u8, addends, DType::u8, x.data(), 1), Error);
  CHECK_THROWS_AS(device_tree_sum(Lane(), DType::f64, addends, DType::f32, x.data(), 1), Error);
}
