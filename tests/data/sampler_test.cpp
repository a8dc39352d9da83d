#include "data/sampler.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

using namespace kozero;

namespace {

/// The windows of one epoch in their order.
std::vector<std::int64_t> epoch_of(Sampler const& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < sampler.windows(); ++i) order.push_back(sampler.window(epoch * sampler.windows() + i));
  return order;
}

bool each_once(std::vector<std::int64_t> order) {
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

/// Pearson's chi² of equally likely cells, as a standard normal number (Wilson and Hilferty, 1931). Cells that were
/// never seen may be left out of the counts.
template <class Counts>
double deviations_off(Counts const& counts, double draws, double cells) {
  double const expected = draws / cells;
  double chi2 = 0;
  std::size_t seen = 0;
  for (double const count : counts) {
    chi2 += (count - expected) * (count - expected) / expected;
    ++seen;
  }
  chi2 += (cells - static_cast<double>(seen)) * expected;
  double const variance = 2 / (9 * (cells - 1));
  return (std::cbrt(chi2 / (cells - 1)) - (1 - variance)) / std::sqrt(variance);
}

} // namespace

TEST_CASE("an epoch has every window once") {
  std::vector<std::int64_t> sizes;
  for (std::int64_t w = 1; w <= 300; ++w) sizes.push_back(w);
  for (std::int64_t const power : {10, 13, 17}) {
    for (std::int64_t const beside : {-1, 0, 1}) sizes.push_back((std::int64_t{1} << power) + beside);
  }
  for (std::int64_t const w : sizes) {
    for (std::int64_t const seed : {std::int64_t{1337}, std::int64_t{-1}}) {
      Sampler const sampler(seed, w);
      for (std::int64_t const epoch : {0, 1, 7}) {
        CAPTURE(w, seed, epoch);
        REQUIRE(each_once(epoch_of(sampler, epoch)));
      }
    }
  }
}

TEST_CASE("samples of huge sets are windows, and different ones") {
  for (std::int64_t const w : {std::int64_t{1} << 40, (std::int64_t{1} << 40) + 1, (std::int64_t{1} << 62) - 3}) {
    Sampler const sampler(1337, w);
    std::set<std::int64_t> seen;
    double mean = 0;
    constexpr int draws = 10000;
    for (std::int64_t s = 0; s < draws; ++s) {
      std::int64_t const window = sampler.window(s);
      REQUIRE(window >= 0);
      REQUIRE(window < w);
      seen.insert(window);
      mean += static_cast<double>(window) / static_cast<double>(w) / draws;
    }
    CHECK(seen.size() == draws);
    CHECK(std::abs(mean - 0.5) < 4 / std::sqrt(12.0 * draws));
  }
}

TEST_CASE("every order of few windows is equally likely") {
  for (std::int64_t const w : {2, 3, 4, 5, 6}) {
    double orders = 1;
    for (std::int64_t i = 2; i <= w; ++i) orders *= static_cast<double>(i);
    std::map<std::vector<std::int64_t>, double> counts;
    double const draws = 2000 + 30 * orders;
    for (std::int64_t epoch = 0; static_cast<double>(epoch) < draws; ++epoch) {
      ++counts[epoch_of(Sampler(1337, w), epoch)];
    }
    std::vector<double> numbers;
    for (auto const& [order, count] : counts) numbers.push_back(count);
    CAPTURE(w, counts.size());
    CHECK(static_cast<double>(counts.size()) == orders);
    CHECK(std::abs(deviations_off(numbers, draws, orders)) < 4);
  }
}

TEST_CASE("every window is equally likely at every place, and after every other") {
  constexpr std::int64_t w = 20;
  constexpr std::int64_t epochs = 4000;
  std::vector<double> places(w * w), successors(w * w);
  Sampler const sampler(7, w);
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    auto const order = epoch_of(sampler, epoch);
    for (std::int64_t i = 0; i < w; ++i) {
      places[static_cast<std::size_t>(i * w + order[static_cast<std::size_t>(i)])] += 1;
      if (i > 0) {
        successors[static_cast<std::size_t>(order[static_cast<std::size_t>(i - 1)] * w +
                                            order[static_cast<std::size_t>(i)])] += 1;
      }
    }
  }
  CHECK(std::abs(deviations_off(places, epochs * w, w * w)) < 4);
  std::vector<double> others; // no window follows itself
  for (std::size_t i = 0; i < successors.size(); ++i) {
    if (i / w != i % w) others.push_back(successors[i]);
  }
  CHECK(std::abs(deviations_off(others, epochs * (w - 1), w * (w - 1))) < 4);
}

TEST_CASE("a large epoch is shuffled, not shifted or sorted") {
  constexpr std::int64_t w = 10007;
  auto const order = epoch_of(Sampler(1337, w), 0);
  double covariance = 0, ascents = 0;
  std::int64_t fixed = 0;
  for (std::int64_t i = 0; i < w; ++i) {
    auto const window = order[static_cast<std::size_t>(i)];
    covariance += (static_cast<double>(i) - w / 2.0) * (static_cast<double>(window) - w / 2.0);
    fixed += window == i;
    if (i > 0) ascents += window > order[static_cast<std::size_t>(i - 1)];
  }
  double const correlation = covariance / (static_cast<double>(w) * w / 12.0 * w);
  CHECK(std::abs(correlation) < 4 / std::sqrt(static_cast<double>(w)));
  CHECK(fixed < 10); // Poisson with mean 1
  CHECK(std::abs(ascents - (w - 1) / 2.0) < 4 * std::sqrt((w + 1) / 12.0));
}

TEST_CASE("orders differ by epoch and by seed, and depend on nothing else") {
  constexpr std::int64_t w = 1000;
  auto const same_places = [](std::vector<std::int64_t> const& a, std::vector<std::int64_t> const& b) {
    std::int64_t same = 0;
    for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
    return same;
  };
  auto const order = epoch_of(Sampler(1, w), 0);
  CHECK(epoch_of(Sampler(1, w), 0) == order);
  for (std::int64_t epoch = 1; epoch <= 20; ++epoch) CHECK(same_places(order, epoch_of(Sampler(1, w), epoch)) < 12);
  for (std::int64_t const seed : {std::int64_t{0}, std::int64_t{2}, std::int64_t{-1}, (std::int64_t{1} << 32) + 1}) {
    CHECK(same_places(order, epoch_of(Sampler(seed, w), 0)) < 12);
  }
}

TEST_CASE("the order does not change from one version of the program to the next") {
  // A checkpoint holds a position in this order: whoever changes these numbers makes resumed runs see other data. They
  // are from a Python program written from the definitions of Philox4x32-10 and of the walk.
  Sampler const sampler(1337, 145);
  std::vector<std::int64_t> first;
  for (std::int64_t s = 140; s < 150; ++s) first.push_back(sampler.window(s));
  CHECK(first == std::vector<std::int64_t>{121, 4, 48, 56, 137, 78, 112, 44, 121, 2});
  std::vector<std::int64_t> two_epochs; // of seven windows; doc/data-order.md states them
  for (std::int64_t s = 0; s < 14; ++s) two_epochs.push_back(Sampler(1337, 7).window(s));
  CHECK(two_epochs == std::vector<std::int64_t>{0, 3, 2, 4, 1, 5, 6, 5, 0, 3, 1, 2, 6, 4});
  Sampler const large(-1, (std::int64_t{1} << 40) + 1);
  CHECK(large.window(1) == 503242966609);
  CHECK(large.window((std::int64_t{1} << 40) + 1) == 825635441262); // epoch 1
}

TEST_CASE("there is no order of no windows") { CHECK_THROWS_AS(Sampler(1, 0), Error); }
