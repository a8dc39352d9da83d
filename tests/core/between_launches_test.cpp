#include "core/between_launches.hpp"

#include "support/catch.hpp"
#include "support/device_array.hpp"

#include <stdexcept>
#include <string>

using namespace kozero;
using namespace kozero::test;

namespace {

void launch_something() { launch(Lane(), "test", Range{1}, KOKKOS_LAMBDA(std::int64_t){}); }

} // namespace

TEST_CASE("work between launches is done after each kernel, fill, copy and library call that a lane is given") {
  DeviceArray<float> const x(3), y(3);
  Lane const lane;
  int calls = 0;
  BetweenLaunches const counting([&] { ++calls; });
  launch_something();
  CHECK(calls == 1);
  launch(lane, "test", Teams{2}, KOKKOS_LAMBDA(RowTeam const&, std::int64_t){});
  CHECK(calls == 2);
  fill(lane, on_device(x.data()), 1.0f, 3);
  CHECK(calls == 3);
  copy(lane, on_device(y.data()), on_device(x.data()), 3);
  CHECK(calls == 4);
  enqueue(lane, "test", {}, {}, [](Lane::Exec const&) {});
  CHECK(calls == 5);
  launch(HostLane(), "test", Range{1}, [](std::int64_t) {}); // its threads are at work
  lane.fence("test");
  CHECK(calls == 5);
}

TEST_CASE("work between launches is never done within itself") {
  int calls = 0;
  BetweenLaunches const launching([&] {
    ++calls;
    launch_something();
  });
  launch_something();
  CHECK(calls == 1);
  launch_something();
  CHECK(calls == 2);
}

TEST_CASE("all that is registered is done, in that order, until it dies") {
  std::string done;
  {
    BetweenLaunches const first([&] { done += 'a'; });
    {
      BetweenLaunches const second([&] { done += 'b'; });
      BetweenLaunches const third([&] { done += 'c'; });
      launch_something();
    }
    launch_something();
  }
  launch_something();
  CHECK(done == "abca");
}

TEST_CASE("work that fails fails the launch that it came after, and is done after the next again") {
  int calls = 0;
  BetweenLaunches const failing([&] {
    if (++calls == 1) throw std::runtime_error("a rank is gone");
  });
  CHECK_THROWS_AS(launch_something(), std::runtime_error);
  launch_something();
  CHECK(calls == 2);
}
