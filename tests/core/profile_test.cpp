#include "core/profile.hpp"

#include "core/event.hpp"
#include "core/launch.hpp"
#include "support/catch.hpp"

#include <string>
#include <vector>

using namespace kozero;

namespace {

struct Recorded {
  Recorded() { profile().start(100); }
  ~Recorded() { profile().stop(); }
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (auto const& span : profile().spans()) all.push_back(std::string(span.what) + "/" + span.of);
  return all;
}

} // namespace

TEST_CASE("nothing is recorded before it is started, nor after it is stopped") {
  profile().start(5);
  profile().stop();
  { HostSpan const span("host"); }
  {
    Lane const lane;
    LaneSpan const span(lane, "lane");
  }
  MessageSpan("message", "control", 7).end();
  CHECK(profile().spans().empty());
}

TEST_CASE_METHOD(Recorded, "spans of a lane begin and end in its order, and nest") {
  Lane const lane = separate_lane("beside");
  {
    LaneSpan const outer(lane, "outer");
    for (char const* name : {"a", "b"}) {
      LaneSpan const inner(lane, "inner", name);
      launch(lane, "test", Range{3}, KOKKOS_LAMBDA(std::int64_t){});
    }
  }
  auto const spans = profile().spans(); // waits for the lane
  REQUIRE(names() == std::vector<std::string>{"outer/", "inner/a", "inner/b"});
  for (auto const& span : spans) CHECK(profile().track_name(span.track) == "device: beside");
  CHECK(spans[0].begin_ns <= spans[1].begin_ns);
  CHECK(spans[1].begin_ns <= spans[1].end_ns);
  CHECK(spans[1].end_ns <= spans[2].begin_ns);
  CHECK(spans[2].end_ns <= spans[0].end_ns);
}

TEST_CASE_METHOD(Recorded, "lanes of one name share a track, others have their own") {
  Lane const one = separate_lane("one"), other = separate_lane("other"), again = separate_lane("one");
  for (auto const* lane : {&one, &other, &again}) LaneSpan const span(*lane, "span");
  auto const spans = profile().spans();
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].track == spans[2].track);
  CHECK(spans[0].track != spans[1].track);
  CHECK(profile().tracks() == 4);
}

TEST_CASE_METHOD(Recorded, "waits of the host are spans by their names") {
  Lane const lane;
  lane.fence("a fence");
  Event event;
  event.record(lane);
  event.wait("an event");
  CHECK(names() == std::vector<std::string>{"wait/a fence", "wait/an event"});
}

TEST_CASE_METHOD(Recorded, "a message tells what had come before somebody waited, all where nobody did") {
  MessageSpan const waited("all_gather", "parameters", 70), early("all_gather", "parameters", 30);
  early.end();
  early.wanted(0); // it was through
  waited.wanted(20);
  waited.end();
  auto const spans = profile().spans();
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].bytes == 70);
  CHECK(spans[0].early_bytes == 20);
  CHECK(spans[1].early_bytes == 30);
  CHECK(spans[0].begin_ns <= spans[1].begin_ns);
  CHECK(spans[1].end_ns <= spans[0].end_ns);
}

TEST_CASE("the last spans are kept, those that gave way are counted, and what has not ended is left out") {
  profile().start(3);
  for (char const* name : {"1", "2", "3", "4", "5"}) HostSpan const span("span", name);
  CHECK(names() == std::vector<std::string>{"span/3", "span/4", "span/5"});
  CHECK(profile().dropped() == 2);
  MessageSpan const under_way("broadcast", "control", 1);
  CHECK(names() == std::vector<std::string>{"span/4", "span/5"});
  profile().stop();
}
