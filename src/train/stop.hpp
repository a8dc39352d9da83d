#pragma once
#include <chrono>
#include <optional>

namespace kozero {

/// Why a run should end before its last update. TERM, INT and USR1 ask for it, and so does the deck's time limit. The
/// first signal lets the run save and leave; a second one leaves at once.
class StopRequest {
public:
  explicit StopRequest(std::optional<double> time_limit_s);
  /// What this rank has seen; the ranks agree on it with each batch.
  bool wanted() const;
  /// "signal 15", "the time limit"
  char const* reason() const;

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> time_limit_s_;
};

} // namespace kozero
