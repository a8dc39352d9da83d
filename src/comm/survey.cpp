#include "comm/survey.hpp"

#include "comm/rank_list.hpp"
#include "core/error.hpp"
#include "core/kokkos.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

namespace kozero {

namespace {

constexpr char between_fields = '\t';

std::vector<std::string> split(std::string const& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
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

/// Ranks by the device that they compute on, whatever their hosts are called: a container may have a name of its own.
std::map<std::string, std::vector<int>> ranks_by_device(std::vector<RankPlace> const& places) {
  std::map<std::string, std::vector<int>> ranks;
  for (std::size_t r = 0; r < places.size(); ++r) {
    if (places[r].device) ranks[places[r].device->identity.uuid].push_back(static_cast<int>(r));
  }
  return ranks;
}

bool is_far(RankPlace const& place) {
  if (!place.device || !place.device->node || place.nodes.empty()) return false;
  return std::ranges::find(place.nodes, *place.device->node) == place.nodes.end();
}

bool sees_too_few(RankPlace const& place, int devices_of_host) {
  return place.device && place.device->identity.visible < devices_of_host;
}

std::string describe_device(RankPlace const& place) {
  auto const& [identity, node, cards] = *place.device;
  std::string text = fmt::format("rank 0 on {} at {}", identity.uuid, identity.address);
  if (node) text += fmt::format(", NUMA node {}", *node);
  if (!cards.empty()) text += fmt::format(", network card{} {}", cards.size() == 1 ? "" : "s", fmt::join(cards, ", "));
  return text;
}

/// "NVIDIA H200", or the names that differ.
std::string names_of_devices(std::vector<RankPlace> const& places) {
  std::vector<std::string> names;
  for (auto const& place : places) {
    if (place.device && std::ranges::find(names, place.device->identity.name) == names.end()) {
      names.push_back(place.device->identity.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void widen(Survey::Range& range, int value) {
  range.least = std::min(range.least, value);
  range.most = std::max(range.most, value);
}

void survey_devices(std::vector<RankPlace> const& places, Survey& result) {
  if (!places.front().device) return;
  std::map<std::string, int> devices_of_host;
  for (auto const& [device, ranks] : ranks_by_device(places)) {
    std::string const& host = places[static_cast<std::size_t>(ranks.front())].host;
    ++devices_of_host[host];
    if (ranks.size() == 1) continue;
    result.shared_devices.push_back(fmt::format("{} on host {} share device {}", name_ranks(ranks), host, device));
  }
  Survey::Range a_host{static_cast<int>(places.size()), 1};
  for (auto const& [host, devices] : devices_of_host) widen(a_host, devices);
  result.devices =
      fmt::format("{} a host: {}; {}", to_text(a_host), names_of_devices(places), describe_device(places.front()));
  for (std::size_t r = 0; r < places.size(); ++r) {
    int const rank = static_cast<int>(r);
    if (is_far(places[r])) result.ranks_far_from_device.push_back(rank);
    if (sees_too_few(places[r], devices_of_host[places[r].host])) result.ranks_without_sight.push_back(rank);
  }
}

} // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

RankPlace::Device place_of_device(DeviceIdentity const& identity, Topology const& topology) {
  auto const [node, cards] = topology.near(identity.address);
  return {identity, node, cards};
}

// Names have no tabs, and those of hosts and cards no blanks or commas.
std::string write_place(RankPlace const& place) {
  std::string line = fmt::format("{} {} {} {} {}\t{}", place.host, place.threads, place.host_processors,
                                 place.processors.to_string(), place.cores.to_string(), fmt::join(place.nodes, ","));
  if (!place.device) return line;
  auto const& [identity, node, cards] = *place.device;
  return line + fmt::format("\t{}\t{}\t{}\t{}\t{}\t{}", identity.name, identity.uuid, identity.address,
                            identity.visible, node.value_or(-1), fmt::join(cards, ","));
}

RankPlace read_place(std::string const& line) {
  RankPlace place;
  auto fields = split(line, between_fields);
  std::istringstream(fields.at(0)) >> place.host >> place.threads >> place.host_processors >> place.processors >>
      place.cores;
  fields.resize(std::max<std::size_t>(fields.size(), 2));
  for (auto const& node : split(fields[1], ',')) place.nodes.push_back(std::stoi(node));
  if (fields.size() < 7) return place;
  fields.resize(8); // no cards, no field
  int const node = std::stoi(fields[6]);
  place.device = {
      .identity = {.name = fields[2], .uuid = fields[3], .address = fields[4], .visible = std::stoi(fields[5])},
      .node = node < 0 ? std::nullopt : std::optional(node),
      .cards = split(fields[7], ',')};
  return place;
}

RankPlace find_place() {
  auto const identity = device_identity();
  using enum Topology::Depth;
  Topology const topology = Topology::of_this_host(identity ? devices : processors);
  RankPlace place;
  place.host = host_name();
  place.threads = static_cast<int>(HostExec().concurrency());
  place.processors = allowed_processors();
  place.host_processors = std::max(topology.processors(), static_cast<int>(place.processors.count()));
  for (std::size_t p = 0; p < place.processors.size(); ++p) {
    if (place.processors[p]) place.cores.set(topology.core_of(p));
  }
  place.nodes = topology.nodes_of(place.processors);
  if (identity) place.device = place_of_device(*identity, topology);
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
  survey_devices(places, result);
  return result;
}

Survey survey(Ranks& ranks) {
  std::vector<RankPlace> places;
  for (std::string const& line : ranks.gather(write_place(find_place()))) places.push_back(read_place(line));
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
