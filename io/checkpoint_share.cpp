#include "io/checkpoint_share.hpp"

#include "core/error.hpp"
#include "io/checkpoint_memory.hpp"
#include "layout/shape.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace kozero::checkpoint {

namespace {

void require_name(TensorShare const& share, std::string const& name) {
  bool const usable = !name.empty() && name != "." && name.find('/') == std::string::npos;
  KOZERO_REQUIRE(usable, "'{}' of state '{}/{}' cannot name a dataset (HDF5 reserves '/' and '.'); rename it", name,
                 share.name, share.kind);
}

/// Brings the entries into order and finds the interval that they are.
void settle(TensorShare& share) {
  auto& entries = share.entries;
  if (entries.empty()) return;
  std::sort(entries.begin(), entries.end(),
            [](auto const& a, auto const& b) { return a.interval.begin < b.interval.begin; });
  for (std::size_t i = 1; i < entries.size(); ++i) {
    std::int64_t const end = entries[i - 1].interval.end;
    std::int64_t const begin = entries[i].interval.begin;
    KOZERO_REQUIRE(begin >= end,
                   "a rank holds elements {} to {} of '{}/{}' twice (a fault of kozero); please report it", begin,
                   std::min(end, entries[i].interval.end), share.name, share.kind);
    KOZERO_REQUIRE(begin == end,
                   "a rank holds elements of '{}/{}' on both sides of {} to {}, but not those (a fault of kozero: what "
                   "it writes is one interval); please report it",
                   share.name, share.kind, end, begin);
  }
  share.interval = {entries.front().interval.begin, entries.back().interval.end};
}

} // namespace

bool TensorShare::is_whole() const { return interval == Interval{0, elements_of(shape)}; }

void TensorShare::reduce_to(Interval part) {
  std::erase_if(entries, [part](auto const& entry) { return intersect(entry.interval, part).empty(); });
  for (StateEntry& entry : entries) {
    Interval const kept = intersect(entry.interval, part);
    entry.data = address_of(entry, kept.begin);
    entry.interval = kept;
  }
  interval = part;
}

std::vector<TensorShare> join(std::span<StateEntry const> entries) {
  std::vector<TensorShare> shares;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (StateEntry const& entry : entries) {
    auto const [place, is_new] = places.try_emplace({entry.name, entry.kind}, shares.size());
    if (is_new) shares.push_back({entry.name, entry.kind, entry.shape, entry.type});
    TensorShare& share = shares[place->second];
    KOZERO_REQUIRE(entry.shape == share.shape && entry.type == share.type,
                   "the entries of '{}/{}' differ in shape or type (a fault of kozero); please report it", entry.name,
                   entry.kind);
    if (!entry.interval.empty()) share.entries.push_back(entry);
  }
  for (TensorShare& share : shares) {
    require_name(share, share.name);
    require_name(share, share.kind);
    settle(share);
  }
  return shares;
}

} // namespace kozero::checkpoint
