#include "core/while_waiting.hpp"

#include "core/heartbeat.hpp"
#include "core/lane.hpp"
#include "support/catch.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace kozero;
using Seen = WhileWaiting::Seen;

TEST_CASE("a wait looks after what is under way, as one for other ranks, until it is done") {
  int looks = 0;
  bool waited_for_ranks = true;
  WhileWaiting const watched([&] {
    ++looks;
    if (looks > 1) waited_for_ranks = waited_for_ranks && heartbeat().waits();
    return Seen::holds_back_lane;
  });
  int asked = 0;
  WhileWaiting::wait([&] { return ++asked > 5; });
  CHECK(asked == 6);
  CHECK(looks == 5);
  CHECK(waited_for_ranks);
  CHECK_FALSE(heartbeat().waits());
}

TEST_CASE("the host waits for other ranks only while these hold a lane back, else for its own device") {
  Heartbeat::Batch const batch;
  std::int64_t const busy_before = heartbeat().read().busy_ns;
  std::int64_t const beats_before = heartbeat().read().beats;
  std::vector<bool> waited;
  int looks = 0;
  auto const looked = [&] { return looks++; };
  WhileWaiting const first([&] {
    waited.push_back(heartbeat().waits());
    heartbeat().beat();
    auto const pause = std::chrono::milliseconds(looks % 2 == 0 ? 0 : 20); // within each wait for ranks
    std::this_thread::sleep_for(pause);
    return looked() % 2 == 0 ? Seen::holds_back_lane : Seen::under_way;
  });
  WhileWaiting const second([] { return Seen::under_way; });
  WhileWaiting::wait([&] { return looks == 6; });
  batch.done();
  CHECK(waited == std::vector<bool>{false, true, false, true, false, true});
  CHECK(heartbeat().read().beats - beats_before == 3); // of the device's work
  CHECK(heartbeat().read().busy_ns - busy_before < 60'000'000);
  CHECK_FALSE(heartbeat().waits());
}

TEST_CASE("what is done needs no look, and where nothing is under way nobody is asked twice") {
  int looks = 0;
  WhileWaiting const watched([&] {
    ++looks;
    return Seen::nothing;
  });
  WhileWaiting::wait([] { return true; });
  CHECK(looks == 0);
  int asked = 0;
  WhileWaiting::wait([&] {
    ++asked;
    return false;
  });
  CHECK(asked == 1);
  CHECK(looks == 1);
}

TEST_CASE("what ends meanwhile ends the looking, and all are looked after") {
  int left = 3;
  int others = 0;
  WhileWaiting const first([&] { return --left > 0 ? Seen::under_way : Seen::nothing; });
  WhileWaiting const second([&] {
    ++others;
    return Seen::nothing;
  });
  WhileWaiting::wait([] { return false; });
  CHECK(left == 0);
  CHECK(others == 3);
}

TEST_CASE("an error that is found comes out of the wait, and of every fence") {
  WhileWaiting const watched([]() -> Seen { throw std::runtime_error("a device is gone"); });
  CHECK_THROWS_WITH(WhileWaiting::wait([] { return false; }), "a device is gone");
  CHECK_FALSE(heartbeat().waits());
  CHECK_THROWS_WITH(Lane().fence("test"), "a device is gone");
}

TEST_CASE("whoever is gone is not asked") {
  int looks = 0;
  {
    WhileWaiting const watched([&] {
      ++looks;
      return Seen::under_way;
    });
    CHECK(WhileWaiting::look() == Seen::under_way);
  }
  CHECK(WhileWaiting::look() == Seen::nothing);
  CHECK(looks == 1);
}
