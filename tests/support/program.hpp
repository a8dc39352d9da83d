#pragma once
// Runs programs as a shell would, and catches what they say.

#include "support/temporary_folder.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace kozero::test {

struct ProgramResult {
  int status = 0; // the exit status; 128 + the signal's number where a signal ended it
  std::string out, err;
};

/// A program that runs beside the test. It is killed when it is still running at the end.
///
///     Program program({KOZERO_BINARY, "train", deck});
///     program.signal(SIGTERM);
///     CHECK(program.wait().status == 75);
class Program {
public:
  using Environment = std::map<std::string, std::string>;

  /// Its environment is this process' with OMP_NUM_THREADS=1, then `environment`.
  explicit Program(std::vector<std::string> const& arguments, Environment const& environment = {});
  ~Program();
  Program(Program const&) = delete;
  Program& operator=(Program const&) = delete;

  void signal(int number) const;
  /// To it, and to what has no children of all that it has started: to a launcher and its ranks.
  void signal_all(int number) const;
  /// Throws when it takes longer.
  ProgramResult wait(std::chrono::seconds at_most = std::chrono::seconds(120));

private:
  TemporaryFolder folder_;
  int process_ = -1;
};

inline ProgramResult run_program(std::vector<std::string> const& arguments,
                                 Program::Environment const& environment = {}) {
  return Program(arguments, environment).wait();
}

} // namespace kozero::test
