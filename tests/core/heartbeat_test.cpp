#include "core/heartbeat.hpp"

#include "core/between_launches.hpp"
#include "support/catch.hpp"

#include <string_view>
#include <thread>

using namespace kozero;
using namespace std::chrono_literals;

TEST_CASE("work beats, and spinning in a wait does not") {
  auto const before = heartbeat().read().beats;
  heartbeat().beat();
  BetweenLaunches::run(); // as each launch does
  CHECK(heartbeat().read().beats == before + 2);
  {
    Heartbeat::Wait const wait;
    CHECK(heartbeat().read().waits);
    BetweenLaunches::run(); // as each turn of the wait does
    CHECK(heartbeat().read().beats == before + 2);
    heartbeat().arrive();
    CHECK(heartbeat().read().beats == before + 3);
  }
  CHECK(!heartbeat().read().waits);
}

TEST_CASE("a wait within another one is a part of it") {
  Heartbeat::Wait const outer;
  { Heartbeat::Wait const inner; }
  CHECK(heartbeat().read().waits);
}

TEST_CASE("collectives are counted and named") {
  auto const before = heartbeat().read().collectives;
  heartbeat().reach("all_gather", "parameters");
  heartbeat().reach("barrier");
  auto const now = heartbeat().read();
  CHECK(now.collectives == before + 2);
  CHECK(std::string_view(now.what) == "barrier");
  CHECK(std::string_view(now.of).empty());
}

TEST_CASE("a batch is busy for its time without its waits") {
  { // before it
    Heartbeat::Wait const wait;
    std::this_thread::sleep_for(20ms);
  }
  auto const before = heartbeat().read();
  auto const begin = std::chrono::steady_clock::now();
  Heartbeat::Batch const batch;
  std::this_thread::sleep_for(20ms);
  {
    Heartbeat::Wait const wait;
    std::this_thread::sleep_for(100ms);
  }
  CHECK(heartbeat().read().batches == before.batches);
  batch.done();
  auto const whole = std::chrono::steady_clock::now() - begin;
  auto const now = heartbeat().read();
  CHECK(now.batches == before.batches + 1);
  std::chrono::nanoseconds const busy(now.busy_ns - before.busy_ns);
  CHECK(busy >= 20ms);
  CHECK(busy <= whole - 100ms);
}
