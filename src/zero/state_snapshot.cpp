#include "zero/state_snapshot.hpp"

#include "core/error.hpp"
#include "core/launch.hpp"
#include "core/open_memory.hpp"

#include <algorithm>
#include <cstring>

namespace kozero {

namespace {

constexpr std::int64_t alignment = 64; // of each copy, as good as that of what is copied

std::int64_t bytes_of(HeldState const& state) { return state.interval.size() * size_of(state.type); }

std::int64_t room_for(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

Space space_of_copy(HeldState const& state) { return state.space == Space::host ? Space::host : Space::pinned; }

std::int64_t room_in(Space space, std::vector<HeldState> const& states) {
  std::int64_t bytes = 0;
  for (auto const& state : states) bytes += space_of_copy(state) == space ? room_for(bytes_of(state)) : 0;
  return bytes;
}

/// Between arrays that the host alone uses.
struct HostCopy {
  void* to;
  void const* from;
  std::int64_t bytes;
};

/// By all of the host's threads, in tiles, whatever the sizes of the arrays are.
void copy_on_host(std::vector<HostCopy> const& copies) {
  constexpr std::int64_t tile_bytes = 1 << 20;
  std::vector<HostCopy> tiles;
  for (auto const& copy : copies) {
    for (std::int64_t at = 0; at < copy.bytes; at += tile_bytes) {
      tiles.push_back({static_cast<unsigned char*>(copy.to) + at, static_cast<unsigned char const*>(copy.from) + at,
                       std::min(tile_bytes, copy.bytes - at)});
    }
  }
  launch(HostLane(), "kozero::snapshot", DynamicRange{std::ssize(tiles)}, [&](std::int64_t i) {
    auto const& tile = tiles[static_cast<std::size_t>(i)];
    std::memcpy(tile.to, tile.from, static_cast<std::size_t>(tile.bytes));
  });
}

} // namespace

StateSnapshot::StateSnapshot(std::vector<HeldState> const& state, std::int64_t more_bytes, Ledger& ledger)
    : pinned_(ledger, Category::snapshot, "snapshot",
              room_in(Space::pinned, state) + more_bytes + (more_bytes > 0 ? std::ssize(state) * alignment : 0)),
      host_(ledger, Category::snapshot, "snapshot", room_in(Space::host, state)) {
  leave_open(host_.data());
  place(state);
}

void StateSnapshot::place(std::vector<HeldState> const& state) {
  KOZERO_REQUIRE(room_in(Space::pinned, state) <= pinned_.size() && room_in(Space::host, state) <= host_.size(),
                 "the copy of the state has too little memory (a fault of kozero); set checkpoint.async: false");
  copies_ = state;
  auto* pinned = pinned_.data();
  auto* host = host_.data();
  for (HeldState& copy : copies_) {
    copy.space = space_of_copy(copy);
    auto*& next = copy.space == Space::pinned ? pinned : host;
    copy.data = next;
    next += room_for(bytes_of(copy));
  }
}

void StateSnapshot::take(Lane const& lane, std::vector<HeldState> const& state) {
  place(state);
  std::vector<HostCopy> on_host;
  for (std::size_t i = 0; i < state.size(); ++i) {
    std::int64_t const bytes = bytes_of(state[i]);
    if (state[i].space == Space::device && !host_reaches_device) {
      copy_bytes(lane, {copies_[i].data, copies_[i].space}, {state[i].data, state[i].space}, bytes);
    } else {
      on_host.push_back({copies_[i].data, state[i].data, bytes});
    }
  }
  lane.fence("snapshot"); // so that it is whole, and the host copies what the lane leaves
  copy_on_host(on_host);
}

} // namespace kozero
