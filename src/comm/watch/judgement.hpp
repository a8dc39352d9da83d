#pragma once
#include "comm/watch/report.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kozero::watch {

/// How many ticks a keeper waits before it ends the run.
struct Patience {
  std::optional<std::int64_t> stalled; // of silence, or of a rank that does not get on; none: for ever
  std::int64_t lost = 3;               // after a connection closed: the rank's own last words may come first

  /// For those who speak only where others, who should have spoken, did not.
  Patience and_more(std::int64_t ticks) const {
    return {stalled ? std::optional(*stalled + ticks) : std::nullopt, lost + ticks};
  }
};

/// Why a run must end, and by whom.
struct Verdict {
  enum class Fault {
    lost,     // the connection closed without a goodbye
    silent,   // no report has come
    idle,     // reports come, and say that the main thread does nothing and waits for nobody
    behind,   // all wait for messages, and these ranks have reached fewer collectives than others
    all_wait, // all wait for messages, in the same place
  };
  Fault fault = Fault::lost;
  std::vector<int> ranks; // at least one
};

/// Nothing while the run may go on. A rank that waits for messages is never at fault while another is at work.
std::optional<Verdict> judge(std::span<RankState const> ranks, Patience const& patience);

/// What to tell people: who is at fault and why, where each rank is, and what to do. `ticks` are seconds.
std::string explain(Verdict const& verdict, std::span<RankState const> ranks, std::int64_t ticks);

/// "rank 3 on host b", "ranks 0, 2-7 on hosts a, b"; of many hosts the first few.
std::string name_ranks(std::vector<int> const& ranks, std::span<RankState const> all);

} // namespace kozero::watch
