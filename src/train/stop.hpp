#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kozero {

/// When a run has to be over.
struct StopTimes {
  std::optional<double> time_limit_s;                           // of the deck, from the start of the training
  std::optional<std::chrono::system_clock::time_point> job_end; // when the scheduler ends the job
  double before_end_s = 0;                                      // how long before that a run saves and leaves
};

/// Why a run should end before its last update: a signal that this process heard (core/signal_listener.hpp), before the
/// training too, the deck's time limit, which counts from here, or the end of the job.
class StopRequest {
public:
  /// A short job is not spent on leaving: what is left of it before `before_end_s` is at least three quarters.
  explicit StopRequest(StopTimes const& times);

  /// What this rank has seen; the ranks agree on it with each batch.
  bool wanted() const { return reason() != 0; }
  /// What asks for it on this rank, or 0; of several that ranks have, the largest is told.
  std::int64_t reason() const;
  /// Leaving takes this long, as was measured: the end of the job is met so much earlier at least.
  void expect_to_take(double seconds);

private:
  bool job_ends() const;

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  StopTimes times_;
};

/// Of StopRequest::reason(): "signal TERM", "time limit", "end of the job".
std::string stop_reason(std::int64_t reason);

} // namespace kozero
