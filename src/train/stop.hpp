#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

namespace kozero {

/// Why a run should end before its last update: a signal that this process heard (core/signal_listener.hpp), before the
/// training too, or the deck's time limit, which counts from here.
class StopRequest {
public:
  explicit StopRequest(std::optional<double> time_limit_s) : time_limit_s_(time_limit_s) {}
  /// What this rank has seen; the ranks agree on it with each batch.
  bool wanted() const;
  /// The signal that asked for it on this rank, or 0.
  std::int64_t signal() const;

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> time_limit_s_;
};

/// "signal TERM"; of 0, "time limit".
char const* stop_reason(std::int64_t signal);

} // namespace kozero
