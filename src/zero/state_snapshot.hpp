#pragma once
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "zero/held_state.hpp"

#include <span>
#include <vector>

namespace kozero {

/// A copy of state in host memory, so that it can be written while training changes the original. What is on the device
/// or pinned goes to pinned memory, the rest to memory like its own. The memory is taken, and touched, once.
///
///     StateSnapshot snapshot(state, 0, ledger);
///     snapshot.take(lane, state);   // the same arrays
///     snapshot.copies();            // as they were then
class StateSnapshot {
public:
  /// For the arrays `state`, and some more of `more_bytes` at most, which may be there beside.
  StateSnapshot(std::vector<HeldState> const& state, std::int64_t more_bytes, Ledger& ledger);

  /// Copies the arrays as the lane leaves them, and waits for that.
  void take(Lane const& lane, std::vector<HeldState> const& state);
  /// Of the arrays that were given last. Those of the constructor always have the same place.
  std::vector<HeldState> const& copies() const { return copies_; }

private:
  void place(std::vector<HeldState> const& state);

  PinnedBuffer<unsigned char> pinned_;
  HostBuffer<unsigned char> host_;
  std::vector<HeldState> copies_;
};

} // namespace kozero
