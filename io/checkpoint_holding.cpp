#include "io/checkpoint_holding.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace kozero::checkpoint {

namespace {

/// Brings the pieces into order and finds the interval that they are.
void settle(Holding& holding) {
  auto& pieces = holding.pieces;
  if (pieces.empty()) return;
  std::sort(pieces.begin(), pieces.end(),
            [](auto const& a, auto const& b) { return a.interval.begin < b.interval.begin; });
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    std::int64_t const end = pieces[i - 1].interval.end;
    std::int64_t const begin = pieces[i].interval.begin;
    KOZERO_REQUIRE(begin >= end,
                   "a rank holds elements {} to {} of '{}/{}' twice (a fault of kozero); please report it", begin,
                   std::min(end, pieces[i].interval.end), holding.name, holding.kind);
    KOZERO_REQUIRE(begin == end,
                   "a rank holds elements of '{}/{}' on both sides of {} to {}, but not those (a fault of kozero: what "
                   "it writes is one interval); please report it",
                   holding.name, holding.kind, end, begin);
  }
  holding.interval = {pieces.front().interval.begin, pieces.back().interval.end};
}

} // namespace

bool Holding::is_whole() const {
  std::int64_t count = 1;
  for (std::int64_t const extent : shape) count *= extent;
  return interval == Interval{0, count};
}

void Holding::reduce_to(Interval part) {
  std::erase_if(pieces, [part](auto const& piece) { return intersect(piece.interval, part).empty(); });
  for (StateEntry& piece : pieces) {
    Interval const kept = intersect(piece.interval, part);
    piece.data = address_of(piece, kept.begin);
    piece.interval = kept;
  }
  interval = part;
}

std::vector<Holding> join(std::span<StateEntry const> entries) {
  std::vector<Holding> holdings;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (StateEntry const& entry : entries) {
    auto const [place, is_new] = places.try_emplace({entry.name, entry.kind}, holdings.size());
    if (is_new) holdings.push_back({entry.name, entry.kind, entry.shape, entry.type});
    Holding& holding = holdings[place->second];
    KOZERO_REQUIRE(entry.shape == holding.shape && entry.type == holding.type,
                   "the entries of '{}/{}' differ in shape or type (a fault of kozero); please report it", entry.name,
                   entry.kind);
    if (!entry.interval.empty()) holding.pieces.push_back(entry);
  }
  for (Holding& holding : holdings) settle(holding);
  return holdings;
}

} // namespace kozero::checkpoint
