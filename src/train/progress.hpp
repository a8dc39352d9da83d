#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace kozero {

/// "2h 03m", "1m 20s", "7.5s"
std::string format_duration(double seconds);
/// "1.23M", "45.6k", "812"
std::string format_count(double count);
/// "0 B", "812 B", "1.5 KiB", "31.40 GiB"
std::string format_bytes(std::int64_t bytes);

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
