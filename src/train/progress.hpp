#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace kozero {

/// The line that shows where a run stands, rewritten in place. Silent where standard error is no terminal, unless the
/// environment says KOZERO_PROGRESS=1 (mpiexec stands between ranks and the terminal); 0 silences it everywhere.
class Progress {
public:
  explicit Progress(bool speaks);
  ~Progress() { clear(); }
  struct Line {
    std::int64_t update = 0;
    std::int64_t updates = 0;
    double loss = 0, lr = 0, norm = 0, tokens_per_s = 0, seconds_left = 0;
  };
  void show(Line const& line);
  /// Any other text, at once.
  void show(std::string const& text);
  /// Removes the line, so that another message can be printed.
  void clear();

private:
  bool speaks_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

} // namespace kozero
