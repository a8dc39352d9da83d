#include "train/stop.hpp"

#include "core/signal_listener.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kozero {

namespace {

constexpr std::int64_t job_end_reason = 1;
constexpr std::int64_t time_limit_reason = 2;
constexpr std::int64_t signal_reasons = 100; // and the signal's number

double seconds_until(std::chrono::system_clock::time_point end) {
  return std::chrono::duration<double>(end - std::chrono::system_clock::now()).count();
}

} // namespace

StopRequest::StopRequest(StopTimes const& times) : times_(times) {
  // One that is over is that of another job, or of a scheduler that could not be asked.
  if (times_.job_end && seconds_until(*times_.job_end) <= 0) times_.job_end.reset();
  if (times_.job_end) times_.before_end_s = std::min(times_.before_end_s, seconds_until(*times_.job_end) / 4);
}

bool StopRequest::job_ends() const { return times_.job_end && seconds_until(*times_.job_end) <= times_.before_end_s; }

std::int64_t StopRequest::reason() const {
  if (int const signal = SignalListener::heard(); signal != 0) return signal_reasons + signal;
  std::chrono::duration<double> const elapsed = std::chrono::steady_clock::now() - start_;
  if (times_.time_limit_s && elapsed.count() >= *times_.time_limit_s) return time_limit_reason;
  return job_ends() ? job_end_reason : 0;
}

void StopRequest::expect_to_take(double seconds) {
  if (times_.job_end) times_.before_end_s = std::max(times_.before_end_s, seconds);
}

std::string stop_reason(std::int64_t reason) {
  for (auto const& signal : stop_signals) {
    if (signal_reasons + signal.number == reason) return fmt::format("signal {}", signal.name);
  }
  return reason == job_end_reason ? "end of the job" : "time limit";
}

} // namespace kozero
