#include "comm/survey.hpp"

#include "core/error.hpp"
#include "core/kokkos.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>

namespace kozero {

namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

// Null where hwloc finds nothing out; then each processor counts as a core.
Topology load_topology() {
  hwloc_topology_t handle = nullptr;
  if (hwloc_topology_init(&handle) != 0) return {nullptr, &hwloc_topology_destroy};
  Topology topology(handle, &hwloc_topology_destroy);
  if (hwloc_topology_load(handle) != 0) topology.reset();
  return topology;
}

std::size_t core_of(hwloc_topology_t topology, std::size_t processor) {
  hwloc_obj_t const unit =
      topology ? hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(processor)) : nullptr;
  hwloc_obj_t const core = unit ? hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit) : nullptr;
  return core ? core->logical_index : processor;
}

// One line of text a rank travels to the others; host names have no blanks.
std::string write(RankPlace const& place) {
  return fmt::format("{} {} {} {} {}", place.host, place.threads, place.host_processors, place.processors.to_string(),
                     place.cores.to_string());
}

RankPlace read(std::string const& line) {
  RankPlace place;
  std::istringstream(line) >> place.host >> place.threads >> place.host_processors >> place.processors >> place.cores;
  return place;
}

bool contains(ProcessorMask const& outer, ProcessorMask const& inner) { return (inner & ~outer).none(); }

struct Demand {
  int ranks = 0;
  int threads = 0;
};

// What must run within the processors of `place`, and nowhere else.
Demand demand_within(RankPlace const& place, std::vector<RankPlace> const& places) {
  Demand demand;
  for (RankPlace const& other : places) {
    if (other.host != place.host || !contains(place.cores, other.cores)) continue;
    ++demand.ranks;
    demand.threads += other.threads;
  }
  return demand;
}

bool ranks_are_apart(std::vector<RankPlace> const& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (places[i].host == places[j].host && (places[i].processors & places[j].processors).any()) return false;
    }
  }
  return true;
}

std::string describe_binding(std::vector<RankPlace> const& places) {
  bool const unbound = std::all_of(places.begin(), places.end(), [](RankPlace const& place) {
    return static_cast<int>(place.processors.count()) >= place.host_processors;
  });
  char const* kind = unbound                   ? "none: any processor of the host"
                     : ranks_are_apart(places) ? "each rank has processors of its own"
                                               : "some ranks have processors in common";
  return fmt::format("{} (rank 0 on {})", kind, to_text(places.front().processors));
}

void widen(Survey::Range& range, int value) {
  range.least = std::min(range.least, value);
  range.most = std::max(range.most, value);
}

} // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

RankPlace find_place() {
  Topology const topology = load_topology();
  RankPlace place;
  place.host = host_name();
  place.threads = static_cast<int>(HostExec().concurrency());
  place.processors = allowed_processors();
  int const known = topology ? hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PU) : 0;
  place.host_processors = std::max(known, static_cast<int>(place.processors.count()));
  for (std::size_t p = 0; p < place.processors.size(); ++p) {
    if (place.processors[p]) place.cores.set(core_of(topology.get(), p));
  }
  return place;
}

Survey summarise(std::vector<RankPlace> const& places) {
  KOZERO_ASSERT(!places.empty());
  Survey result;
  result.ranks = static_cast<int>(places.size());
  result.threads_per_rank = {places.front().threads, places.front().threads};
  auto const processors = [](RankPlace const& place) { return static_cast<int>(place.processors.count()); };
  result.processors_per_rank = {processors(places.front()), processors(places.front())};
  for (RankPlace const& place : places) {
    widen(result.threads_per_rank, place.threads);
    widen(result.processors_per_rank, processors(place));
    if (std::find(result.hosts.begin(), result.hosts.end(), place.host) == result.hosts.end()) {
      result.hosts.push_back(place.host);
    }
    Demand const demand = demand_within(place, places);
    result.ranks_share_cores |= demand.ranks > static_cast<int>(place.cores.count());
    result.threads_exceed_processors |= demand.threads > processors(place);
  }
  result.ranks_per_host = {result.ranks, 1};
  for (std::string const& host : result.hosts) {
    widen(result.ranks_per_host, static_cast<int>(std::count_if(places.begin(), places.end(), [&](auto const& place) {
            return place.host == host;
          })));
  }
  result.binding = describe_binding(places);
  return result;
}

Survey survey(Ranks& ranks) {
  std::vector<RankPlace> places;
  for (std::string const& line : ranks.gather(write(find_place()))) places.push_back(read(line));
  return summarise(places);
}

std::string to_text(Survey::Range range) {
  return range.least == range.most ? fmt::format("{}", range.most) : fmt::format("{} to {}", range.least, range.most);
}

std::string to_text(ProcessorMask const& mask) {
  std::string text;
  for (std::size_t first = 0; first < mask.size(); ++first) {
    if (!mask[first]) continue;
    std::size_t last = first;
    while (last + 1 < mask.size() && mask[last + 1]) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return text.empty() ? "none" : text;
}

} // namespace kozero
