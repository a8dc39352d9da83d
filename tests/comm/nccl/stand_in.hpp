#pragma once
// NCCL over MPI, on hosts: what a test links in the place of the library. It holds every call to NCCL's rules, aborting
// the program with words where one is broken, and moves data when the lane comes to a call. It takes its time: a group
// is with "the device" only after being asked a few times, by chance, differently on each rank, so that ranks begin one
// group while others are at the one before.

#include <cstdint>
#include <optional>

#include <nccl.h>

namespace kozero::test {

/// What goes wrong, and when. Tests set it; of a program by KOZERO_STAND_IN_FAILS=RANK:GROUP.
struct NcclBehaviour {
  int most_late = 8;                         // times that a group is asked for before it begins
  std::optional<std::int64_t> fails_at = {}; // the group, from 0, in which this rank fails
  ncclResult_t failure = ncclSystemError;    // with this
  std::optional<std::int64_t> stops_at = {}; // the group to which this rank never comes
  bool init_fails = false;                   // at once
  bool init_never_ends = false;              // this rank does not come
  bool finalize_never_ends = false;          // asked again and again
  bool finalize_hangs = false;               // within the call
  bool loads = true;                         // the library is there
  int version = 22809;
};
NcclBehaviour& nccl_behaviour();

struct NcclCounts {
  std::int64_t groups = 0;   // that have begun
  std::int64_t messages = 0; // sent to other ranks
  std::int64_t open = 0;     // communicators that are neither destroyed nor aborted
  std::int64_t aborted = 0;
};
NcclCounts nccl_counts();
/// Groups are counted anew from here.
void restart_nccl_counts();

} // namespace kozero::test
