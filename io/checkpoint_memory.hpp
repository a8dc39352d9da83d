#pragma once
// Between an entry's memory and host memory that a file is read into. Private to io.

#include "core/memory.hpp"
#include "io/state_entry.hpp"

#include <vector>

namespace kozero::checkpoint {

using Bytes = std::vector<unsigned char>;

inline bool host_reaches(Space space) { return space != Space::device || host_reaches_device; }

/// Where an element of the entry's interval is in its memory.
inline unsigned char* address_of(StateEntry const& entry, std::int64_t element) {
  return static_cast<unsigned char*>(entry.data) + (element - entry.interval.begin) * size_of(entry.type);
}

/// Elements `part` of the entry, which lie in host memory as `type`, to their place. Types that differ must be floats.
void fill(StateEntry const& entry, Interval part, DType type, unsigned char const* elements);

/// Fills entries of one matrix [in, out] from a matrix [out, in] that comes in tiles. Where the host does not reach an
/// entry's memory, its elements wait for the last tile in host memory.
///
///     TransposedFill fill(entries);
///     for each tile: fill.take(interval, type, elements);   // of the flattened [out, in]
///     fill.finish();
class TransposedFill {
public:
  /// All entries are of one shape [in, out] and one type; empty ones are left out.
  explicit TransposedFill(std::vector<StateEntry> entries);
  void take(Interval tile, DType type, unsigned char const* elements);
  void finish() const;

private:
  struct Target {
    StateEntry entry; // in host memory
    StateEntry place; // the same elements where they are to be
    Bytes waiting;
  };
  std::vector<Target> targets_;
};

} // namespace kozero::checkpoint
