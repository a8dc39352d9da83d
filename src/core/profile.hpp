#pragma once
#include "core/lane.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// When things of this process began and ended: work of lanes, of the host, and messages. Off until start(), and then
/// it costs a test of a flag. Nothing is allocated while it records; it keeps the last spans, `capacity` of them.
///
///     profile().start(profile_capacity);
///     { LaneSpan const span(lane, "forward", "h.3");  … }   // what the lane is given meanwhile
///     { HostSpan const span("adamw tile");  … }             // the host itself
///     MessageSpan reduction("reduce_scatter", "gradients", bytes);  …  reduction.end();
///     profile().spans();
///
/// Of names the address is kept: they must stay until spans() has been read. The thread that gives work to lanes uses
/// it.
class Profile {
public:
  struct Span {
    char const* what = "";
    char const* of = ""; // a unit, a purpose, the name of a wait
    int track = 0;
    std::int64_t begin_ns = 0; // of the steady clock; 0: not yet
    std::int64_t end_ns = 0;
    std::int64_t bytes = 0;       // of messages
    std::int64_t early_bytes = 0; // of those, what had come before anybody waited
  };
  /// Spans on one track nest, but those of messages, which are under way side by side.
  static constexpr int host_track = 0;
  static constexpr int message_track = 1;

  /// Forgets what was. `capacity` must be above the number of spans that are under way at once.
  void start(std::int64_t capacity);
  void stop() { on_ = false; }
  bool on() const { return on_; }

  /// Those that have ended, oldest first, after waiting for all lanes.
  std::vector<Span> spans() const;
  /// Earlier ones that gave way to later ones.
  std::int64_t dropped() const;
  std::string track_name(int track) const;
  int tracks() const { return static_cast<int>(lanes_.size()) + 2; }

  // For the spans below.
  Span* take(int track, char const* what, char const* of);
  int track_of(Lane const& lane);

private:
  bool on_ = false;
  std::vector<Span> ring_;
  std::int64_t taken_ = 0;
  std::vector<std::string> lanes_; // by track, from 2
};

/// Spans that a run keeps: about 13 MB.
inline constexpr std::int64_t profile_capacity = 200'000;

/// Of this process.
Profile& profile();

/// A region of Kokkos' tools, where one is loaded.
class ToolRegion {
public:
  ToolRegion(char const* what, char const* of);
  ~ToolRegion();
  ToolRegion(ToolRegion const&) = delete;
  ToolRegion& operator=(ToolRegion const&) = delete;

private:
  bool pushed_;
};

/// From where the lane comes to what it is given while this lives, to where it has done that: stamps in its order.
class LaneSpan {
public:
  LaneSpan(Lane const& lane, char const* what, char const* of = "");
  ~LaneSpan() noexcept(false); // on the emulated device giving work may run other work
  LaneSpan(LaneSpan const&) = delete;
  LaneSpan& operator=(LaneSpan const&) = delete;

private:
  ToolRegion region_;
  Lane const& lane_;
  Profile::Span* span_ = nullptr;
  int exceptions_ = 0;
};

/// Work or a wait of the host.
class HostSpan {
public:
  explicit HostSpan(char const* what, char const* of = "");
  ~HostSpan();
  HostSpan(HostSpan const&) = delete;
  HostSpan& operator=(HostSpan const&) = delete;

private:
  Profile::Span* span_ = nullptr;
};

/// A collective, from the call that starts it to where the host sees that its messages are through.
class MessageSpan {
public:
  MessageSpan() = default; // of nothing
  MessageSpan(char const* what, char const* purpose, std::int64_t bytes);
  /// Somebody begins to wait for it.
  void wanted(std::int64_t arrived_bytes) const;
  void end() const;

private:
  Profile::Span* span_ = nullptr;
};

} // namespace kozero
