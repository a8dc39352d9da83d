#pragma once
#include "comm/ranks.hpp"
#include "comm/topology.hpp"
#include "core/device.hpp"
#include "core/processors.hpp"

#include <optional>
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
  std::vector<int> nodes;   // NUMA nodes of those processors

  /// The accelerator that the rank computes on, and what is near it.
  struct Device {
    DeviceIdentity identity;
    std::optional<int> node;        // NUMA node
    std::vector<std::string> cards; // network cards
  };
  std::optional<Device> device; // none where the device is the host
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

  /// "8 a host: NVIDIA H200; rank 0 on GPU-…, NUMA node 0, network card mlx5_0"; empty where the device is the host.
  std::string devices;
  std::vector<std::string> shared_devices; // "ranks 0-1 on host a share GPU-…"
  std::vector<int> ranks_far_from_device;  // whose processors are all on other NUMA nodes than their device
  std::vector<int> ranks_without_sight;    // that see fewer devices than ranks of their host compute on
};

/// This process' place, as the system and hwloc know it.
RankPlace find_place();

/// Of this host, as the system calls it; without blanks.
std::string host_name();

/// Of a place, as it travels between ranks: one line.
std::string write_place(RankPlace const& place);
RankPlace read_place(std::string const& line);

/// What is near a device.
RankPlace::Device place_of_device(DeviceIdentity const& identity, Topology const& topology);

/// The table's content from the places of all ranks, by rank.
Survey summarise(std::vector<RankPlace> const& places);

/// Collective: the same on all ranks.
Survey survey(Ranks& ranks);

/// "4", "3 to 4"
std::string to_text(Survey::Range range);
/// "0-3,8"
std::string to_text(ProcessorMask const& mask);

} // namespace kozero
