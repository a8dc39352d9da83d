#pragma once
#include "core/profile.hpp"
#include "layout/partition.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace kozero {

/// Who has the time of an update.
enum class Part { device, host, link, exchange, idle };

inline constexpr int n_parts = 5;
char const* name_of(Part part);

/// Nanoseconds of a window of time, by part.
struct TimeParts {
  /// Each instant is one part's, so that these add up to the window.
  std::array<std::int64_t, n_parts> taken{};
  /// What goes on, hidden behind another part or not: parts may overlap. Idle is as above.
  std::array<std::int64_t, n_parts> busy{};

  std::int64_t taken_by(Part part) const { return taken[static_cast<std::size_t>(part)]; }
  std::int64_t busy_with(Part part) const { return busy[static_cast<std::size_t>(part)]; }
};

/// Whether what lanes are given runs beside the host's thread, or is what that thread does.
enum class LaneWork { beside_host, by_host };

/// Reads a window of a profile; spans outside of it do not count.
///
/// device:   work of units, norm, AdamW, publishing and adding up gradients on the device
/// host:     AdamW and adding up gradients on the host, reading tokens
/// link:     copies between device and host memory
/// exchange: messages under way, and waiting for them
/// idle:     nothing of these
///
/// Where several go on at once the time is the first one's in that order. By the host's own thread (LaneWork::by_host)
/// only one thing is done at a time, and messages that are under way meanwhile cost nothing: the time is that of what
/// is waited for or done innermost, and messages have it where nothing is done.
TimeParts time_parts(std::span<Profile::Span const> spans, Interval window_ns, LaneWork lanes);

} // namespace kozero
