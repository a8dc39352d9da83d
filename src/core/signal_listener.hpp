#pragma once
#include <array>
#include <chrono>
#include <csignal>
#include <thread>

namespace kozero {

/// What asks a program to stop.
struct StopSignal {
  int number;
  char const* name;
};
inline constexpr std::array<StopSignal, 4> stop_signals = {
    {{SIGTERM, "TERM"}, {SIGINT, "INT"}, {SIGUSR1, "USR1"}, {SIGHUP, "HUP"}}};

/// HUP ends the process again, or is ignored, as before libraries took it: their handlers would interrupt generated
/// code. In main, before that runs.
void restore_hup();

/// Hears the stop signals on a thread of its own. They are blocked everywhere else, so none interrupts other code: a
/// library's generated code may keep data where a handler's frame would go. What must not wait for MPI or for a batch
/// to end can be done by this thread; it never calls MPI.
///
///     SignalListener const listener;                 // in main, before MPI and Kokkos start threads: those inherit
///     …                                              // what is blocked
///     if (SignalListener::heard() != 0) …            // save and leave
///
/// The signals stay blocked when it ends, so that a late one does not spoil the exit status of a run that is saved.
class SignalListener {
public:
  /// A scheduler tells the launcher and every rank, and the launcher tells the ranks, and may tell again while a save
  /// is under way: whatever follows the first signal is the same request. Only an INT that comes later than this, a
  /// person's second Ctrl-C, ends the process at once, with status 1 and nothing saved.
  static constexpr std::chrono::seconds copies_within{2};

  /// A parent may have had signals ignored: shells do so with INT for what runs in the background, and that is undone
  /// here. But a HUP that is ignored stays so: that is what nohup was asked for.
  SignalListener();
  ~SignalListener();
  SignalListener(SignalListener const&) = delete;
  SignalListener& operator=(SignalListener const&) = delete;

  /// The first signal that this process heard, or 0. From any thread.
  static int heard();

  /// What the thread does with a signal; a test with no listener asks for a stop so. Not from two threads at a time.
  static void hear(int signal);
  /// As if none had come: between the trainings of a test.
  static void forget();

private:
  std::thread thread_;
};

} // namespace kozero
