#include "data/batch_shape.hpp"

#include "core/error.hpp"
#include "data/sampler.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

/// Samples that a rank takes in one batch, in its order.
std::vector<std::int64_t> samples_of(BatchShape const& shape, std::int64_t batch, std::int64_t rank) {
  std::vector<std::int64_t> samples;
  for (std::int64_t m = 0; m < shape.accumulate; ++m) {
    for (std::int64_t i = 0; i < shape.micro; ++i) samples.push_back(shape.first_sample(batch, m, rank) + i);
  }
  return samples;
}

/// What the training loop takes its windows from, up to `batches`; rows of rank 0 first.
std::vector<std::int64_t> windows_seen(Sampler const& sampler, BatchShape const& shape, std::int64_t from,
                                       std::int64_t to) {
  std::vector<std::int64_t> windows;
  for (std::int64_t batch = from; batch < to; ++batch) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      for (std::int64_t const sample : samples_of(shape, batch, rank)) windows.push_back(sampler.window(sample));
    }
  }
  return windows;
}

} // namespace

TEST_CASE("a batch is cut by micro-batches, then ranks, then rows") {
  BatchShape const shape{2, 2, 3};
  CHECK(shape.global() == 12);
  CHECK(samples_of(shape, 0, 0) == std::vector<std::int64_t>{0, 1, 6, 7});
  CHECK(samples_of(shape, 0, 2) == std::vector<std::int64_t>{4, 5, 10, 11});
  CHECK(samples_of(shape, 5, 1) == std::vector<std::int64_t>{62, 63, 68, 69});
}

TEST_CASE("ranks may take several micro-batches in a row") {
  BatchShape const shape{2, 4, 2, 2};
  CHECK(samples_of(shape, 0, 0) == std::vector<std::int64_t>{0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(samples_of(shape, 0, 1) == std::vector<std::int64_t>{4, 5, 6, 7, 12, 13, 14, 15});
  CHECK(samples_of({2, 4, 2, 4}, 1, 1) == std::vector<std::int64_t>{24, 25, 26, 27, 28, 29, 30, 31});
}

TEST_CASE("ranks share the samples of a batch: all of them, each once, the same however they are cut") {
  for (BatchShape const shape :
       {BatchShape{16, 1, 3}, BatchShape{4, 4, 3}, BatchShape{1, 48, 1}, BatchShape{3, 2, 8}, BatchShape{1, 1, 48},
        BatchShape{4, 4, 3, 2}, BatchShape{1, 12, 4, 4}, BatchShape{1, 12, 4, 12}}) {
    REQUIRE(shape.global() == 48);
    for (std::int64_t batch : {0, 1, 1000}) {
      std::vector<std::int64_t> all;
      for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
        auto const samples = samples_of(shape, batch, rank);
        CHECK(samples.size() == 48 / static_cast<std::size_t>(shape.ranks));
        all.insert(all.end(), samples.begin(), samples.end());
      }
      std::sort(all.begin(), all.end());
      std::vector<std::int64_t> expected;
      for (std::int64_t s = 0; s < 48; ++s) expected.push_back(batch * 48 + s);
      CHECK(all == expected);
    }
  }
}

TEST_CASE("no rank runs out of data before another") {
  // 145 windows, batch 16, 3 ranks: 48 does not divide 145, and the 4th batch goes on into the second epoch.
  constexpr std::int64_t n_windows = 145;
  BatchShape const shape{16, 1, 3};
  CHECK(updates_per_epoch(n_windows, shape) == 145.0 / 48.0);
  CHECK(updates_per_epoch(10, shape) == 10.0 / 48.0);

  Sampler const sampler(1337, n_windows);
  constexpr std::int64_t batches = 145; // 48 epochs
  auto const windows = windows_seen(sampler, shape, 0, batches);
  REQUIRE(windows.size() == batches * 48);
  std::vector<std::int64_t> times(n_windows);
  for (std::int64_t const window : windows) ++times[static_cast<std::size_t>(window)];
  CHECK(std::all_of(times.begin(), times.end(), [](std::int64_t n) { return n == 48; }));
}

TEST_CASE("a resumed run sees the windows that the uninterrupted one would have seen") {
  BatchShape const shape{4, 2, 3};
  Sampler const uninterrupted(1337, 145);
  auto const all = windows_seen(uninterrupted, shape, 0, 20);
  Sampler const resumed(1337, 145);
  auto const rest = windows_seen(resumed, shape, 7, 20);
  CHECK(rest == std::vector<std::int64_t>(all.begin() + 7 * shape.global(), all.end()));
}

TEST_CASE("the deck's batch section gives a shape") {
  BatchShape shape = batch_shape({8, {}, {}}, 3);
  CHECK((shape.micro == 8 && shape.accumulate == 1 && shape.ranks == 3));
  CHECK(batch_shape({8, 4, {}}, 3).global() == 96);
  shape = batch_shape({8, {}, 96}, 3);
  CHECK((shape.micro == 8 && shape.accumulate == 4 && shape.ranks == 3));

  // CASES 20 as batch.global: 16 windows are not shared by 3 ranks.
  std::string const refusal = message_of<InputError>([] { batch_shape({1, {}, 16}, 3); });
  CHECK(contains(refusal, {"batch.global", "16", "3 ranks", "; make"}));
}

TEST_CASE("an evaluation ends where the windows end") {
  BatchShape const shape{4, 1, 3};
  CHECK(evaluation_batches(0, shape, 10) == 0);
  CHECK(evaluation_batches(1, shape, 10) == 1);
  CHECK(evaluation_batches(12, shape, 10) == 1);
  CHECK(evaluation_batches(13, shape, 10) == 2);
  CHECK(evaluation_batches(1000, shape, 10) == 10);
}
