#include "core/signal_listener.hpp"

#include "core/error.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace kozero {

namespace {

std::atomic<int> first_signal = 0;
std::chrono::steady_clock::time_point heard_at;
std::atomic<bool> ending = false; // the next signal is the destructor's

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t set_of_stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (auto const& signal : stop_signals) sigaddset(&set, signal.number);
  return set;
}

void listen() {
  sigset_t const set = set_of_stop_signals();
  for (;;) {
    int number = 0;
    int const error = sigwait(&set, &number);
    if (ending) return;
    if (error == 0) SignalListener::hear(number);
  }
}

} // namespace

SignalListener::SignalListener() {
  for (auto const& signal : stop_signals) {
    if (signal.number != SIGHUP || !is_ignored(SIGHUP)) std::signal(signal.number, SIG_DFL);
  }
  sigset_t const set = set_of_stop_signals();
  int const error = pthread_sigmask(SIG_BLOCK, &set, nullptr);
  KOZERO_REQUIRE(error == 0, "signals cannot be blocked ({}); report it", std::strerror(error));
  ending = false;
  thread_ = std::thread(listen);
}

SignalListener::~SignalListener() {
  ending = true;
  pthread_kill(thread_.native_handle(), SIGUSR1); // any of those that it waits for
  thread_.join();
}

int SignalListener::heard() { return first_signal; }

void SignalListener::hear(int signal) {
  auto const now = std::chrono::steady_clock::now();
  if (first_signal == 0) {
    heard_at = now;
    first_signal = signal;
  } else if (signal == SIGINT && now - heard_at > copies_within) {
    _exit(exit_failed);
  }
}

void SignalListener::forget() { first_signal = 0; }

} // namespace kozero
