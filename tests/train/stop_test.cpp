// Why and when a run stops.
#include "core/signal_listener.hpp"
#include "train/stop.hpp"

#include "support/catch.hpp"

using namespace kozero;
using namespace std::chrono_literals;

namespace {

StopRequest in(std::chrono::duration<double> left, double before_end_s) {
  auto const end = std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::microseconds>(left);
  return StopRequest({.time_limit_s = {}, .job_end = end, .before_end_s = before_end_s});
}

} // namespace

TEST_CASE("nothing asks for a stop unless something does") {
  CHECK_FALSE(StopRequest({}).wanted());
  CHECK_FALSE(StopRequest({.time_limit_s = 100, .job_end = {}}).wanted());
  CHECK_FALSE(in(1h, 120).wanted());
}

TEST_CASE("the time limit and the end of the job ask for a stop") {
  StopRequest const limit({.time_limit_s = 0, .job_end = {}});
  CHECK(stop_reason(limit.reason()) == "time limit");
  StopRequest soon = in(10min, 60);
  CHECK_FALSE(soon.wanted());
  soon.expect_to_take(60); // less than is left already
  CHECK_FALSE(soon.wanted());
  soon.expect_to_take(601);
  CHECK(stop_reason(soon.reason()) == "end of the job");
  CHECK_FALSE(in(-1s, 60).wanted()); // of another job
}

TEST_CASE("a job that is shorter than the time to leave is used all the same") {
  CHECK_FALSE(in(60s, 120).wanted());
  CHECK(in(60s, 120).reason() == 0);
}

TEST_CASE("a signal is told before all else, by its name") {
  for (auto const& signal : stop_signals) {
    SignalListener::hear(signal.number);
    StopRequest const both({.time_limit_s = 0, .job_end = {}});
    CHECK(stop_reason(both.reason()) == std::string("signal ") + signal.name);
    CHECK(both.reason() > 2); // than the other reasons
    SignalListener::forget();
  }
}
