#include "bench/time_parts.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace kozero {

namespace {

/// What a span is of: the parts, and of exchange whether somebody waits.
enum class Kind { device, host, link, messages, waiting };
constexpr int n_kinds = 5;
using Kinds = std::array<int, n_kinds>; // how many spans of each go on

Part part_of(Kind kind) {
  switch (kind) {
  case Kind::device: return Part::device;
  case Kind::host: return Part::host;
  case Kind::link: return Part::link;
  case Kind::messages:
  case Kind::waiting: return Part::exchange;
  }
  return Part::idle;
}

std::optional<Kind> kind_of(Profile::Span const& span) {
  std::string_view const what = span.what;
  if (span.track == Profile::message_track) return Kind::messages;
  if (span.track == Profile::host_track) {
    std::string_view const of = span.of;
    if (what == "wait" && (of == "messages" || of == "ranks")) return Kind::waiting;
    bool const works = what == "adamw tile" || what == "add gradients" || what == "tokens";
    return works ? std::optional(Kind::host) : std::nullopt;
  }
  bool const copies = what == "down" || what == "up" || what == "tokens";
  return copies ? Kind::link : Kind::device;
}

/// Whose the time is when these go on.
Part owner(Kinds const& going_on, LaneWork lanes) {
  using Order = std::array<Kind, n_kinds>;
  constexpr Order beside = {Kind::device, Kind::host, Kind::link, Kind::waiting, Kind::messages};
  constexpr Order by_host = {Kind::host, Kind::waiting, Kind::link, Kind::device, Kind::messages};
  for (Kind const kind : lanes == LaneWork::beside_host ? beside : by_host) {
    if (going_on[static_cast<std::size_t>(kind)] > 0) return part_of(kind);
  }
  return Part::idle;
}

/// A span begins or ends.
struct Edge {
  std::int64_t at_ns = 0;
  Kind kind = Kind::device;
  int change = 1;
};

std::vector<Edge> edges_within(std::span<Profile::Span const> spans, Interval window) {
  std::vector<Edge> edges;
  for (auto const& span : spans) {
    Interval const within = intersect(window, {span.begin_ns, span.end_ns});
    auto const kind = kind_of(span);
    if (!kind || within.empty()) continue;
    edges.push_back({within.begin, *kind, 1});
    edges.push_back({within.end, *kind, -1});
  }
  std::ranges::sort(edges, {}, &Edge::at_ns);
  return edges;
}

/// The parts that go on, each once.
std::array<bool, n_parts> parts_of(Kinds const& going_on) {
  std::array<bool, n_parts> parts{};
  for (int kind = 0; kind < n_kinds; ++kind) {
    if (going_on[static_cast<std::size_t>(kind)] > 0) {
      parts[static_cast<std::size_t>(part_of(static_cast<Kind>(kind)))] = true;
    }
  }
  return parts;
}

} // namespace

char const* name_of(Part part) {
  constexpr std::array<char const*, n_parts> names = {"device", "host", "link", "exchange", "idle"};
  return names[static_cast<std::size_t>(part)];
}

TimeParts time_parts(std::span<Profile::Span const> spans, Interval window_ns, LaneWork lanes) {
  TimeParts parts;
  Kinds going_on{};
  std::int64_t at = window_ns.begin;
  auto const go_to = [&](std::int64_t next) {
    parts.taken[static_cast<std::size_t>(owner(going_on, lanes))] += next - at;
    auto const busy = parts_of(going_on);
    for (std::size_t part = 0; part < busy.size(); ++part) parts.busy[part] += busy[part] ? next - at : 0;
    at = next;
  };
  for (Edge const& edge : edges_within(spans, window_ns)) {
    go_to(edge.at_ns);
    going_on[static_cast<std::size_t>(edge.kind)] += edge.change;
  }
  go_to(window_ns.end);
  parts.busy[static_cast<std::size_t>(Part::idle)] = parts.taken_by(Part::idle);
  return parts;
}

} // namespace kozero
