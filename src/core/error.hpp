#pragma once
// Errors speak to the user: "what is wrong (why); what to do".

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace kozero {

/// The process' exit status, as scripts and batch systems see it.
enum ExitCode : int { exit_done = 0, exit_failed = 1, exit_bad_input = 2, exit_stopped_early = 75 };

class Error : public std::runtime_error {
public:
  explicit Error(std::string const& message, int exit_code = exit_failed)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

private:
  int exit_code_;
};

/// The deck or the command line is wrong: exit status 2, before anything is allocated.
class InputError : public Error {
public:
  explicit InputError(std::string const& message) : Error(message, exit_bad_input) {}
};

/// An error that every rank has, so that one of them tells it and all leave in good order.
class SharedError : public Error {
public:
  using Error::Error;
};

namespace detail {
[[noreturn]] void fail_assertion(char const* condition, char const* file, int line);
} // namespace detail

} // namespace kozero

/// Always on: what can go wrong in a correct program. KOZERO_REQUIRE(n > 0, "batch is {} (…); set …", n)
#define KOZERO_REQUIRE(condition, ...)                                                                                 \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      throw ::kozero::Error(::fmt::format(__VA_ARGS__));                                                               \
    }                                                                                                                  \
  } while (false)

/// Only in checked builds: what a correct program never does.
#ifdef KOZERO_CHECKED
#define KOZERO_ASSERT(condition)                                                                                       \
  do {                                                                                                                 \
    if (!(condition)) ::kozero::detail::fail_assertion(#condition, __FILE__, __LINE__);                                \
  } while (false)
#else
#define KOZERO_ASSERT(condition) static_cast<void>(sizeof(condition))
#endif
