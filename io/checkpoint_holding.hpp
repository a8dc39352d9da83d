#pragma once
// What a rank's file of a checkpoint holds of each tensor. Private to io.

#include "layout/state_entry.hpp"

#include <span>
#include <string>
#include <vector>

namespace kozero::checkpoint {

/// What one rank holds of one tensor and kind. In memory it may lie in several pieces (of optimizer state that is
/// offloaded in part, some on the device and some on the host); on disk it is one dataset.
struct Holding {
  std::string name;
  std::string kind;
  std::vector<std::int64_t> shape; // of the whole tensor
  DType type = DType::f32;
  Interval interval = {};              // {0, 0} where nothing is held
  std::vector<StateEntry> pieces = {}; // of the interval, ascending, without gaps; none is empty

  bool is_whole() const;
  /// Holds only `part` from now on, which must lie in the interval.
  void reduce_to(Interval part);
};

/// Puts the entries of each (name, kind) together, in the order in which these first appear. Error where two entries
/// of a tensor overlap, leave a gap or do not agree on shape and type.
std::vector<Holding> join(std::span<StateEntry const> entries);

/// Where an element of the entry's interval is in its memory.
inline unsigned char* address_of(StateEntry const& entry, std::int64_t element) {
  return static_cast<unsigned char*>(entry.data) + (element - entry.interval.begin) * size_of(entry.type);
}

} // namespace kozero::checkpoint
