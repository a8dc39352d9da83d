#pragma once
// Threads of execution that take turns on one thread of the system, each on a stack of its own.

#include <cstdint>
#include <exception>

namespace kozero::emulated {

/// A stack that runs one function after the other, and whoever resumes it.
///
///     Fibre fibre;
///     fibre.start(f, argument);              // nothing runs yet
///     while (!fibre.ended()) fibre.resume(); // runs f until it calls fibre.pause() or ends
///     fibre.error();                         // what f has thrown, or null
class Fibre {
public:
  Fibre();
  ~Fibre();
  Fibre(Fibre const&) = delete;
  Fibre& operator=(Fibre const&) = delete;

  void start(void (*f)(void*), void* argument);
  /// Only while it has not ended, by code outside of it.
  void resume();
  /// By the code that runs in it.
  void pause();
  bool ended() const { return ended_; }
  std::exception_ptr error() const { return error_; }

private:
  [[noreturn]] static void main(Fibre* self);

  char* stack_; // of the system: a closed page, then stack_bytes
  void* here_ = nullptr;
  void* outside_ = nullptr;
  void (*f_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
  std::exception_ptr error_;
  void const* outside_bottom_ = nullptr; // for AddressSanitizer
  std::size_t outside_bytes_ = 0;
};

} // namespace kozero::emulated
