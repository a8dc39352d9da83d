#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace kozero::watch {

/// What a rank tells its keepers with every tick, as it lies in memory.
struct Report {
  std::array<char, 48> place{}; // the collective that it has reached, with a 0 at the end
  std::int64_t collectives = 0; // reached so far
  std::int64_t idle_ticks = 0;  // its own, since it last got on
  std::int64_t batches = 0;     // done
  std::int64_t busy_ns = 0;     // of those, without waits for messages
  std::int64_t waits = 0;       // 1: for messages
  std::int64_t leaves = 0;      // 1: the last report, the run is at its end

  bool waiting() const { return waits != 0; }
  bool leaving() const { return leaves != 0; }
};

/// What a keeper knows of a rank.
struct RankState {
  enum class Link { none, up, left, lost }; // none: it has never come
  std::string host;
  Link link = Link::none;
  std::int64_t silent_ticks = 0; // the keeper's, since its last report, or since the link was lost
  Report last;
};

} // namespace kozero::watch
