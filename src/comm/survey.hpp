#pragma once
#include "comm/ranks.hpp"
#include "core/processors.hpp"

#include <string>
#include <vector>

namespace kozero {

/// Where one rank runs.
struct RankPlace {
  std::string host;
  int threads = 1;
  int host_processors = 1;  // all that the host has
  ProcessorMask processors; // that the rank may run on
  ProcessorMask cores;      // of those processors, by number of the core on its host
};

/// What the start-up table says about ranks, hosts and threads.
struct Survey {
  struct Range {
    int least = 1;
    int most = 1;
  };
  int ranks = 1;
  std::vector<std::string> hosts; // names, in the order of their first ranks
  Range ranks_per_host;
  Range threads_per_rank;
  Range processors_per_rank; // that it may run on
  /// Some ranks of a host have fewer cores to run on than they are.
  bool ranks_share_cores = false;
  /// Some ranks of a host have fewer processors to run on than threads.
  bool threads_exceed_processors = false;
  /// "none: any processor of the host (rank 0 on 0-31)"
  std::string binding;
};

/// This process' place, as the system and hwloc know it.
RankPlace find_place();

/// Of this host, as the system calls it; without blanks.
std::string host_name();

/// The table's content from the places of all ranks, by rank.
Survey summarise(std::vector<RankPlace> const& places);

/// Collective: the same on all ranks.
Survey survey(Ranks& ranks);

/// "4", "3 to 4"
std::string to_text(Survey::Range range);
/// "0-3,8"
std::string to_text(ProcessorMask const& mask);

} // namespace kozero
