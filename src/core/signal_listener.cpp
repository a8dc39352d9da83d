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

bool hup_is_ignored = false;

/// Libraries of networks (UCX, and with it MPICH) put handlers in place as they are loaded, so this looks before them.
void look_at_hup() {
  struct sigaction action {};
  hup_is_ignored = sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}
[[maybe_unused, gnu::used, gnu::section(".preinit_array")]] void (*const before_libraries)() = look_at_hup;

/// Those that are listened to, made heedable. One that is ignored would be heard all the same once it is blocked.
sigset_t heeded_signals() {
  sigset_t set;
  sigemptyset(&set);
  restore_hup();
  for (auto const& signal : stop_signals) {
    if (signal.number == SIGHUP && hup_is_ignored) continue;
    std::signal(signal.number, SIG_DFL); // not of a parent either: shells ignore INT of what runs in the background
    sigaddset(&set, signal.number);
  }
  return set;
}

void listen(sigset_t const set) {
  for (;;) {
    int number = 0;
    int const error = sigwait(&set, &number);
    if (ending) return;
    if (error == 0) SignalListener::hear(number);
  }
}

} // namespace

void restore_hup() { std::signal(SIGHUP, hup_is_ignored ? SIG_IGN : SIG_DFL); }

SignalListener::SignalListener() {
  sigset_t const set = heeded_signals();
  int const error = pthread_sigmask(SIG_BLOCK, &set, nullptr);
  KOZERO_REQUIRE(error == 0, "signals cannot be blocked ({}); report it", std::strerror(error));
  ending = false;
  thread_ = std::thread(listen, set);
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
