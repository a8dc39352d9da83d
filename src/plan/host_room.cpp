#include "plan/host_room.hpp"

#include "comm/agree.hpp"
#include "comm/survey.hpp"
#include "core/format.hpp"
#include "io/host_memory.hpp"
#include "plan/rank_plan.hpp"
#include "plan/run_plan.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

namespace kozero {

namespace {

constexpr bool device_is_host = host_reaches_device || KOZERO_EMULATED;

/// All ranks that one bound holds for, together.
struct Demand {
  int ranks = 0;
  std::int64_t bytes = 0;
  std::int64_t available = 0;
};
struct Bound {
  std::string host, identity, name; // the name of what bounds memory there
  friend bool operator<(Bound const& a, Bound const& b) {
    return std::tie(a.host, a.identity, a.name) < std::tie(b.host, b.identity, b.name);
  }
};
using Demands = std::map<Bound, Demand>;

/// One rank's need and bounds, as a message: host names and identities have no blanks, names of bounds no line breaks.
std::string write(std::int64_t bytes, std::vector<MemoryBound> const& bounds) {
  std::string text = fmt::format("{} {}\n", host_name(), bytes);
  for (MemoryBound const& bound : bounds)
    text += fmt::format("{} {} {}\n", bound.available, bound.identity, bound.name);
  return text;
}

void add(std::string const& text, Demands& demands) {
  std::istringstream lines(text);
  std::string host, identity, name;
  std::int64_t bytes = 0, available = 0;
  lines >> host >> bytes;
  while (lines >> available >> identity && std::getline(lines >> std::ws, name)) {
    auto const [place, is_new] = demands.try_emplace({host, identity, name});
    Demand& demand = place->second;
    ++demand.ranks;
    demand.bytes += bytes;
    demand.available = is_new ? available : std::min(demand.available, available);
  }
}

std::string advice_on(std::vector<MemoryRow> const& memory) {
  std::string const on_host = advice(memory, Space::host);
  if (!device_is_host) return on_host;
  return advice(memory, Space::device) + "\n  and of what stands beside the device:" + on_host;
}

} // namespace

std::int64_t host_bytes_of(std::vector<MemoryRow> const& memory) {
  std::int64_t const device = device_is_host ? budget_bytes(memory, Space::device) : 0;
  return device + budget_bytes(memory, Space::host) + uncounted_host_bytes;
}

std::optional<std::string> lack_of_host_memory(Config const& config, BatchShape const& batch, Ranks& ranks,
                                               std::string const& root) {
  auto const memory = on_all_ranks(ranks, [&] { return plan_rank(config, batch, ranks.rank()).memory; });
  Demands demands;
  for (auto const& text : ranks.gather(write(host_bytes_of(memory), host_memory_bounds(root)))) add(text, demands);
  auto const lacking =
      std::ranges::find_if(demands, [](auto const& item) { return item.second.bytes > item.second.available; });
  if (lacking == demands.end()) return {};
  auto const& [bound, demand] = *lacking;
  std::string text = fmt::format(
      "host memory: the {} on host {} will take {} ({} has {} left for {}); use more hosts or fewer ranks on one, or "
      "shrink a row of rank 0's:{}\nor set memory.host_limit, which is then what counts",
      demand.ranks == 1 ? "rank" : fmt::format("{} ranks", demand.ranks), bound.host, format_bytes(demand.bytes),
      bound.name, format_bytes(demand.available), demand.ranks == 1 ? "it" : "them",
      advice_on(plan_rank(config, batch, 0).memory));
  return text;
}

} // namespace kozero
