#pragma once
// What a rank's file of a checkpoint holds of each tensor. Private to io.

#include "io/state_entry.hpp"

#include <span>
#include <string>
#include <vector>

namespace kozero::checkpoint {

/// One rank's share of one tensor and kind. In memory it may lie in several places (of optimizer state that is
/// offloaded in part, some on the device and some on the host), each an entry; on disk it is one dataset.
struct TensorShare {
  std::string name;
  std::string kind;
  std::vector<std::int64_t> shape; // of the whole tensor
  DType type = DType::f32;
  Interval interval = {};               // {0, 0} where nothing is held
  std::vector<StateEntry> entries = {}; // of the interval, ascending, without gaps; none is empty

  bool is_whole() const;
  /// Holds only `part` from now on, which must lie in the interval.
  void reduce_to(Interval part);
};

/// Puts the entries of each (name, kind) together, in the order in which these first appear. Error where two entries
/// of a tensor overlap, leave a gap or do not agree on shape and type, or where HDF5 has no such names.
std::vector<TensorShare> join(std::span<StateEntry const> entries);

} // namespace kozero::checkpoint
