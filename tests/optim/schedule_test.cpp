#include "optim/schedule.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace kozero;

namespace {

constexpr double peak = 1e-3;
constexpr double low = 1e-4;

std::vector<double> rates(ScheduleKind kind, std::int64_t warmup, std::int64_t total, std::int64_t count,
                          double min_lr = low, double decay = 0.2) {
  OptimizerConfig optimizer;
  optimizer.lr = peak;
  ScheduleConfig const schedule{.kind = kind, .warmup = warmup, .min_lr = min_lr, .decay = decay};
  std::vector<double> rates;
  for (std::int64_t i = 0; i < count; ++i) rates.push_back(learning_rate(optimizer, schedule, total, i));
  return rates;
}

/// Equal to a few units in the last place.
bool close(std::vector<double> const& a, std::vector<double> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= 4 * std::numeric_limits<double>::epsilon() * peak)) return false;
  }
  return true;
}

constexpr ScheduleKind kinds[] = {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                                  ScheduleKind::wsd};

} // namespace

// Written by hand from the comment in the header, with peak 1e-3 and min_lr 1e-4; one rate past the end.
TEST_CASE("the rate of every update of small runs") {
  using V = std::vector<double>;
  CHECK(close(rates(ScheduleKind::constant, 0, 3, 4), V{1e-3, 1e-3, 1e-3, 1e-3}));
  CHECK(close(rates(ScheduleKind::constant, 4, 3, 5), V{2.5e-4, 5e-4, 7.5e-4, 1e-3, 1e-3}));

  CHECK(close(rates(ScheduleKind::linear, 0, 4, 5), V{1e-3, 7e-4, 4e-4, 1e-4, 1e-4}));
  CHECK(close(rates(ScheduleKind::linear, 1, 4, 5), V{1e-3, 7e-4, 4e-4, 1e-4, 1e-4}));
  CHECK(close(rates(ScheduleKind::linear, 2, 5, 6), V{5e-4, 1e-3, 7e-4, 4e-4, 1e-4, 1e-4}));

  // 1e-4 + 9e-4 (1 + cos(πx)) / 2 at x = 1/3 and 2/3, whose cosines are 1/2 and -1/2.
  CHECK(close(rates(ScheduleKind::cosine, 0, 4, 5), V{1e-3, 7.75e-4, 3.25e-4, 1e-4, 1e-4}));
  CHECK(close(rates(ScheduleKind::cosine, 2, 5, 6), V{5e-4, 1e-3, 7.75e-4, 3.25e-4, 1e-4, 1e-4}));

  // The last 0.3 · 10 = 3 updates descend.
  CHECK(close(rates(ScheduleKind::wsd, 2, 10, 11, low, 0.3),
              V{5e-4, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 7e-4, 4e-4, 1e-4, 1e-4}));
  // Less than half an update is one; a descent that would begin within the warm-up begins at its end.
  CHECK(close(rates(ScheduleKind::wsd, 0, 3, 4, low, 0.1), V{1e-3, 1e-3, 1e-4, 1e-4}));
  CHECK(close(rates(ScheduleKind::wsd, 2, 5, 6, low, 0.9), V{5e-4, 1e-3, 7e-4, 4e-4, 1e-4, 1e-4}));
  CHECK(close(rates(ScheduleKind::wsd, 0, 4, 5, low, 1.0), V{1e-3, 7e-4, 4e-4, 1e-4, 1e-4}));
  CHECK(close(rates(ScheduleKind::wsd, 0, 3, 4, low, 0.0), V{1e-3, 1e-3, 1e-3, 1e-4}));

  // No room for a descent.
  for (ScheduleKind const kind : {ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::wsd}) {
    CHECK(close(rates(kind, 0, 0, 2), V{1e-4, 1e-4}));
    CHECK(close(rates(kind, 0, 1, 2), V{1e-3, 1e-4}));
    CHECK(close(rates(kind, 1, 1, 2), V{1e-3, 1e-4}));
    CHECK(close(rates(kind, 4, 2, 3), V{2.5e-4, 5e-4, 1e-4}));
  }
}

TEST_CASE("the rate is finite, never above the peak, and ends at min_lr") {
  for (ScheduleKind const kind : kinds) {
    for (std::int64_t const warmup : {0, 1, 5, 20, 100}) {
      for (std::int64_t const total : {0, 1, 5, 20}) {
        for (double const min_lr : {0.0, 0.1 * peak, peak}) {
          CAPTURE(static_cast<int>(kind), warmup, total, min_lr);
          auto const rate = rates(kind, warmup, total, 200, min_lr);
          for (std::size_t i = 0; i < rate.size(); ++i) {
            auto const update = static_cast<std::int64_t>(i);
            REQUIRE(std::isfinite(rate[i]));
            REQUIRE(rate[i] <= peak);
            REQUIRE(rate[i] >= 0);
            bool const within = kind == ScheduleKind::constant || update < total;
            if (within && update < warmup) {
              REQUIRE(rate[i] > 0); // every update does something
              REQUIRE((i == 0 || rate[i] > rate[i - 1]));
            } else {
              REQUIRE(rate[i] >= min_lr);
              if (within && update > warmup) REQUIRE(rate[i] <= rate[i - 1]);
            }
            if (within && warmup > 0 && update == warmup - 1) REQUIRE(rate[i] == peak);
            if (within && warmup == 0 && update == 0) REQUIRE(rate[i] == peak);
            if (kind != ScheduleKind::constant && update >= total) REQUIRE(rate[i] == min_lr);
          }
          bool const has_room = total > std::max<std::int64_t>(warmup, 1);
          if (kind != ScheduleKind::constant && has_room) {
            REQUIRE(rate[static_cast<std::size_t>(total - 1)] == min_lr);
          }
        }
      }
    }
  }
}

TEST_CASE("the rate of a long run is right at its corners") {
  std::int64_t const total = std::int64_t{1} << 40;
  OptimizerConfig optimizer;
  optimizer.lr = peak;
  for (ScheduleKind const kind : {ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::wsd}) {
    ScheduleConfig const schedule{.kind = kind, .warmup = total / 4, .min_lr = low, .decay = 0.2};
    auto const at = [&](std::int64_t i) { return learning_rate(optimizer, schedule, total, i); };
    CHECK(at(0) == peak / static_cast<double>(total / 4));
    CHECK(at(total / 4 - 1) == peak);
    CHECK(at(total - 1) == low);
    CHECK(at(total - 2) >= low);
  }
}
