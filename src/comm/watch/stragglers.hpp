#pragma once
#include "comm/watch/report.hpp"

#include <span>
#include <string>
#include <vector>

namespace kozero::watch {

/// Finds ranks that the others wait for: those whose batches take far longer than the median of the ranks, without the
/// waits for messages. Each is named once.
class Stragglers {
public:
  static constexpr double factor = 1.5;
  static constexpr std::int64_t least_batches = 20;
  static constexpr std::int64_t least_ticks = 10;

  /// Called with every tick; a line for each rank that was found. Ranks that are not watched are not looked at.
  std::vector<std::string> look(std::span<RankState const> ranks);

private:
  struct Begin {
    std::int64_t batches = 0;
    std::int64_t busy_ns = 0;
  };
  void start_window(std::span<RankState const> ranks);

  std::vector<Begin> begins_; // of the window, by rank
  std::int64_t ticks_ = 0;
  std::vector<bool> named_;
};

} // namespace kozero::watch
