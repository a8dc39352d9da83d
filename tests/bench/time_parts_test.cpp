// Whose the time of a window is, from spans that are written down.
#include "support/catch.hpp"

#include "bench/time_parts.hpp"

#include <numeric>
#include <vector>

using namespace kozero;

namespace {

constexpr int main_lane = 2;
constexpr int link_lane = 3;

using Span = Profile::Span;
using Times = std::array<std::int64_t, n_parts>; // device, host, link, exchange, idle

Span span(int track, char const* what, char const* of, std::int64_t begin, std::int64_t end) {
  return {.what = what, .of = of, .track = track, .begin_ns = begin, .end_ns = end};
}

TimeParts parts_of(std::vector<Span> const& spans, Interval window, LaneWork lanes) {
  TimeParts const parts = time_parts(spans, window, lanes);
  CHECK(std::accumulate(parts.taken.begin(), parts.taken.end(), std::int64_t{0}) == window.size());
  return parts;
}

} // namespace

TEST_CASE("a window without spans is idle, and one of no length nothing") {
  CHECK(parts_of({}, {5, 12}, LaneWork::beside_host).taken == Times{0, 0, 0, 0, 7});
  CHECK(parts_of({}, {5, 12}, LaneWork::beside_host).busy == Times{0, 0, 0, 0, 7});
  CHECK(parts_of({span(main_lane, "forward", "h.0", 1, 9)}, {4, 4}, LaneWork::by_host).taken == Times{});
}

TEST_CASE("beside the host, the device has the time, then host, link and messages") {
  std::vector<Span> const spans = {
      span(main_lane, "forward", "h.0", 10, 30),
      span(main_lane, "adamw", "", 90, 100),
      span(Profile::host_track, "adamw tile", "", 20, 50),
      span(link_lane, "up", "", 45, 60),
      span(Profile::message_track, "all_gather", "parameters", 55, 70),
      span(Profile::message_track, "all_gather", "parameters", 58, 75), // side by side
      span(Profile::host_track, "wait", "messages", 65, 80),
      span(Profile::host_track, "wait", "loss", 80, 95), // for the device: its own time, or nobody's
  };
  TimeParts const parts = parts_of(spans, {0, 110}, LaneWork::beside_host);
  CHECK(parts.taken == Times{30, 20, 10, 20, 30});
  CHECK(parts.busy == Times{30, 30, 15, 25, 30});
}

TEST_CASE("by the host's thread, the time is that of what it does innermost") {
  std::vector<Span> const spans = {
      span(main_lane, "reduce", "h.0", 0, 40),
      span(Profile::host_track, "wait", "messages", 10, 30),
      span(Profile::host_track, "adamw tile", "", 15, 20), // between two looks at the messages
      span(Profile::message_track, "reduce_scatter", "gradients", 0, 35),
      span(Profile::message_track, "reduce_scatter", "gradients", 60, 70), // nobody waits, nothing is done
      span(Profile::host_track, "tokens", "", 40, 45),
      span(link_lane, "tokens", "", 45, 50),
      span(Profile::host_track, "wait", "ranks", 50, 55),
  };
  TimeParts const parts = parts_of(spans, {0, 80}, LaneWork::by_host);
  CHECK(parts.taken == Times{20, 10, 5, 15 + 5 + 10, 15});
  CHECK(parts.busy_with(Part::device) == 40);
  CHECK(parts.busy_with(Part::exchange) == 35 + 5 + 10);
}

TEST_CASE("what lies outside of the window does not count, and what crosses its edges counts in part") {
  std::vector<Span> const spans = {
      span(main_lane, "forward", "h.0", 0, 15),
      span(main_lane, "forward", "h.1", 15, 20),
      span(link_lane, "down", "", 28, 90),
      span(Profile::host_track, "add gradients", "", 100, 200),
  };
  for (auto const lanes : {LaneWork::beside_host, LaneWork::by_host}) {
    CHECK(parts_of(spans, {10, 30}, lanes).taken == Times{10, 0, 2, 0, 8});
  }
}
