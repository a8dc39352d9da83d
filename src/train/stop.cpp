#include "train/stop.hpp"

#include "core/signal_listener.hpp"

#include <csignal>

namespace kozero {

bool StopRequest::wanted() const {
  if (signal() != 0) return true;
  std::chrono::duration<double> const elapsed = std::chrono::steady_clock::now() - start_;
  return time_limit_s_ && elapsed.count() >= *time_limit_s_;
}

std::int64_t StopRequest::signal() const { return SignalListener::heard(); }

char const* stop_reason(std::int64_t signal) {
  switch (signal) {
  case SIGTERM: return "signal TERM";
  case SIGINT: return "signal INT";
  case SIGUSR1: return "signal USR1";
  default: return "time limit";
  }
}

} // namespace kozero
