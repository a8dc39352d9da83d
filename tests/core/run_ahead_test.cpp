#include "core/run_ahead.hpp"

#include "core/activity.hpp"
#include "core/between_launches.hpp"
#include "core/while_waiting.hpp"
#include "support/catch.hpp"
#include "support/device_array.hpp"

#include <deque>

#if KOZERO_EMULATED
#include "core/emulated/policy.hpp"
#endif

using namespace kozero;
using namespace kozero::test;

namespace {

/// The most launches that were given and had not run, of 100.
int most_ahead(WhileWaiting::Seen seen) {
  WhileWaiting const watched([seen] { return seen; });
  Lane const lane = separate_lane();
  RunAhead ahead(16, {default_lane(), lane});
  BetweenLaunches const kept([&] { ahead.look(); });
  std::deque<Event> left;
  std::size_t most = 0;
  for (int i = 0; i < 100; ++i) {
    launch(lane, "test", Range{1}, KOKKOS_LAMBDA(std::int64_t){});
    left.emplace_back().record(lane);
    while (!left.empty() && left.front().done()) left.pop_front();
    most = std::max(most, left.size());
  }
  lane.fence("test");
  return static_cast<int>(most);
}

} // namespace

TEST_CASE("while lanes may wait for other ranks, the host is no more launches ahead than it may be") {
#if KOZERO_EMULATED
  emulated::set_policy({.order = emulated::Policy::Order::latest});
  CHECK(most_ahead(WhileWaiting::Seen::nothing) == 100); // as the queue keeps them
#endif
  CHECK(most_ahead(WhileWaiting::Seen::under_way) <= 16);
  CHECK(most_ahead(WhileWaiting::Seen::holds_back_lane) <= 16);
}

TEST_CASE("asking without a launch in between is no launch") {
  int looks = 0;
  WhileWaiting const watched([&] {
    ++looks;
    return WhileWaiting::Seen::under_way;
  });
  RunAhead ahead(5, {default_lane()});
  for (int i = 0; i < 100; ++i) ahead.look();
  CHECK(looks == 0);
}

TEST_CASE("an error that is found meanwhile comes out of the launch") {
#if KOZERO_EMULATED
  emulated::set_policy({.order = emulated::Policy::Order::latest});
  WhileWaiting const watched([]() -> WhileWaiting::Seen { throw std::runtime_error("a rank is gone"); });
  RunAhead ahead(16, {default_lane()});
  BetweenLaunches const kept([&] { ahead.look(); });
  auto const launches = [] {
    for (int i = 0; i < 100; ++i) launch(Lane(), "test", Range{1}, KOKKOS_LAMBDA(std::int64_t){});
  };
  CHECK_THROWS_WITH(launches(), "a rank is gone");
#endif
}
