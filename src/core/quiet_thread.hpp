#pragma once
#include <csignal>
#include <thread>
#include <utility>

namespace kozero {

/// A thread that no signal interrupts: they are the other threads' business, but for those that it causes itself.
/// Throws as std::thread does.
template <class Work>
std::thread start_quiet_thread(Work&& work) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      for (int const own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, own);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } const blocked;
  return std::thread(std::forward<Work>(work));
}

} // namespace kozero
