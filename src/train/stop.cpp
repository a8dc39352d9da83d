#include "train/stop.hpp"

#include "core/error.hpp"

#include <csignal>
#include <unistd.h>

namespace kozero {

namespace {

volatile std::sig_atomic_t caught = 0;

extern "C" void remember_signal(int number) {
  if (caught != 0) _exit(exit_failed);
  caught = number;
}

} // namespace

StopRequest::StopRequest(std::optional<double> time_limit_s) : time_limit_s_(time_limit_s) {
  caught = 0;
  struct sigaction action {};
  action.sa_handler = remember_signal;
  action.sa_flags = SA_RESTART;
  for (int const number : {SIGTERM, SIGINT, SIGUSR1}) sigaction(number, &action, nullptr);
}

bool StopRequest::wanted() const {
  if (caught != 0) return true;
  std::chrono::duration<double> const elapsed = std::chrono::steady_clock::now() - start_;
  return time_limit_s_ && elapsed.count() >= *time_limit_s_;
}

std::int64_t StopRequest::signal() const { return caught; }

char const* stop_reason(std::int64_t signal) {
  switch (signal) {
  case SIGTERM: return "signal TERM";
  case SIGINT: return "signal INT";
  case SIGUSR1: return "signal USR1";
  default: return "time limit";
  }
}

} // namespace kozero
