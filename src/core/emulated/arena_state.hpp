#pragma once
// What the report of a fault is made from. All of it can be read in a signal handler: nothing allocates.

#include "core/emulated/arena.hpp"

#include <algorithm>
#include <cstdint>

namespace kozero::emulated {

/// What runs.
struct Running {
  Reach reach;
  char const* label;
  char const* lane;
};
Running const& running();

/// A copy that has not run, and what of pinned memory it keeps closed.
struct Closure {
  std::int64_t number;
  Access access;            // of the copy
  char const *begin, *end;  // its bytes
  char const *first, *last; // its pages
  char const* label;
  char const* lane;
  bool closes(char const* from, char const* to, Access wanted) const {
    return std::max(from, first) < std::min(to, last) && forbids(wanted); // nothing where it fills no page
  }
  /// The same to the byte, for those who ask before they touch.
  bool works_on(char const* from, char const* to, Access wanted) const {
    return from < end && begin < to && forbids(wanted);
  }
  bool forbids(Access wanted) const { return access == Access::write || wanted == Access::write; }
};

/// The first pending copy that keeps code from that access to [begin, end), or null.
Closure const* closure_of(char const* begin, char const* end, Access wanted);

/// Whether `p` is in one of the three ranges, and in which.
std::optional<Space> range_of(void const* p);

} // namespace kozero::emulated
