#include "core/while_waiting.hpp"

#include "core/heartbeat.hpp"
#include "core/lane.hpp"
#include "support/catch.hpp"

#include <stdexcept>

using namespace kozero;

TEST_CASE("a wait looks after what is under way, as one for other ranks, until it is done") {
  int looks = 0;
  bool waited_for_ranks = true;
  WhileWaiting const watched([&] {
    ++looks;
    if (looks > 1) waited_for_ranks = waited_for_ranks && heartbeat().waits();
    return true;
  });
  int asked = 0;
  WhileWaiting::wait([&] { return ++asked > 5; });
  CHECK(asked == 6);
  CHECK(looks == 5);
  CHECK(waited_for_ranks);
  CHECK_FALSE(heartbeat().waits());
}

TEST_CASE("what is done needs no look, and where nothing is under way nobody is asked twice") {
  int looks = 0;
  WhileWaiting const watched([&] {
    ++looks;
    return false;
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
  WhileWaiting const first([&] { return --left > 0; });
  WhileWaiting const second([&] {
    ++others;
    return false;
  });
  WhileWaiting::wait([] { return false; });
  CHECK(left == 0);
  CHECK(others == 3);
}

TEST_CASE("an error that is found comes out of the wait, and of every fence") {
  WhileWaiting const watched([]() -> bool { throw std::runtime_error("a device is gone"); });
  CHECK_THROWS_WITH(WhileWaiting::wait([] { return false; }), "a device is gone");
  CHECK_FALSE(heartbeat().waits());
  CHECK_THROWS_WITH(Lane().fence("test"), "a device is gone");
}

TEST_CASE("whoever is gone is not asked") {
  int looks = 0;
  {
    WhileWaiting const watched([&] { return ++looks > 0; });
    CHECK(WhileWaiting::look());
  }
  CHECK_FALSE(WhileWaiting::look());
  CHECK(looks == 1);
}
