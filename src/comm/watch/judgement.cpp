#include "comm/watch/judgement.hpp"

#include "comm/rank_list.hpp"
#include "core/error.hpp"
#include "core/format.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <tuple>

namespace kozero::watch {

namespace {

using Link = RankState::Link;
using Fault = Verdict::Fault;

template <class Is>
std::vector<int> ranks_that(std::span<RankState const> ranks, Is const& is) {
  std::vector<int> found;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (is(ranks[r])) found.push_back(static_cast<int>(r));
  }
  return found;
}

std::string why(Fault fault, std::size_t culprits, std::int64_t ticks) {
  std::string const time = format_duration(static_cast<double>(ticks));
  bool const one = culprits == 1;
  switch (fault) {
  case Fault::lost:
    return fmt::format(
        "{} gone (the connection closed without a goodbye: killed, crashed, or ended by a library); look "
        "there for its last words, then go on with --resume auto",
        one ? "is" : "are");
  case Fault::silent:
    return fmt::format("{} not been heard of for {} (stopped, or its node or the network hangs); look at that node, "
                       "then go on with --resume auto",
                       one ? "has" : "have", time);
  case Fault::idle:
    return fmt::format("{} not got on for {} (a loop without end, or a file or device that does not answer); look "
                       "there, then go on with --resume auto, with a larger run.stall_limit if this was no fault",
                       one ? "has" : "have", time);
  case Fault::behind:
    return fmt::format("{} behind the others, and no message has come for {}; look at the network of that node, then "
                       "go on with --resume auto",
                       one ? "is" : "are", time);
  case Fault::all_wait: break;
  }
  return fmt::format("{} for messages, and none has come for {}; look at the network between the nodes, then go on "
                     "with --resume auto",
                     one ? "waits" : "wait", time);
}

/// Where a rank is, as far as it is known.
struct Place {
  Link link = Link::none;
  std::int64_t collectives = 0;
  std::string name;
  bool waits = false;
  bool was = false; // when it was last heard of

  friend bool operator==(Place const&, Place const&) = default;
};

Place place_of(RankState const& rank) {
  if (rank.link == Link::none) return {};
  bool const was = rank.link == Link::lost || rank.silent_ticks > 2;
  return {rank.link, rank.last.collectives, rank.last.place.data(), rank.last.waiting() && !was, was};
}

std::string to_text(Place const& place, bool one) {
  if (place.link == Link::none) return one ? "is not watched" : "are not watched";
  if (place.link == Link::left) return one ? "is at its end" : "are at their end";
  if (place.collectives == 0) return one ? "has reached no collective" : "have reached no collective";
  char const* const verb = place.was     ? (one ? "was last heard of in" : "were last heard of in")
                           : place.waits ? (one ? "waits in" : "wait in")
                                         : (one ? "has reached" : "have reached");
  return fmt::format("{} {}, number {}", verb, place.name, place.collectives);
}

/// A line for all ranks in the same place, in the order of their first ranks.
std::string describe_places(std::span<RankState const> ranks) {
  std::vector<std::pair<Place, std::vector<int>>> groups;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    Place const place = place_of(ranks[r]);
    auto group = std::ranges::find(groups, place, [](auto const& known) -> Place const& { return known.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {place, {}});
    group->second.push_back(static_cast<int>(r));
  }
  constexpr std::size_t most_lines = 20;
  std::string text;
  for (std::size_t g = 0; g < std::min(groups.size(), most_lines); ++g) {
    auto const& [place, members] = groups[g];
    text += fmt::format("\n  {} {}", kozero::name_ranks(members), to_text(place, members.size() == 1));
  }
  if (groups.size() > most_lines) text += fmt::format("\n  and {} places more", groups.size() - most_lines);
  return text;
}

std::optional<Verdict> judge_waits(std::span<RankState const> ranks, std::int64_t limit) {
  bool const all_are_seen = std::ranges::none_of(ranks, [](auto const& rank) { return rank.link == Link::none; });
  auto const waits = [&](RankState const& rank) {
    return rank.link == Link::left || (rank.link == Link::up && rank.last.waiting() && rank.last.idle_ticks >= limit);
  };
  // One that is not watched may be at work.
  if (!all_are_seen || !std::ranges::all_of(ranks, waits)) return std::nullopt;
  auto const here = ranks_that(ranks, [](RankState const& rank) { return rank.link == Link::up; });
  if (here.empty()) return std::nullopt;
  auto const reached = [&](int r) { return ranks[static_cast<std::size_t>(r)].last.collectives; };
  std::int64_t const least = reached(std::ranges::min(here, {}, reached));
  if (least == reached(std::ranges::max(here, {}, reached))) return Verdict{Fault::all_wait, here};
  Verdict verdict{Fault::behind, {}};
  std::ranges::copy_if(here, std::back_inserter(verdict.ranks), [&](int r) { return reached(r) == least; });
  return verdict;
}

} // namespace

std::string name_ranks(std::vector<int> const& ranks, std::span<RankState const> all) {
  constexpr std::size_t most_hosts = 4;
  std::vector<std::string> hosts;
  for (int const r : ranks) {
    std::string const& host = all[static_cast<std::size_t>(r)].host;
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  bool const many = hosts.size() > most_hosts;
  std::size_t const n_hosts = hosts.size();
  hosts.resize(std::min(hosts.size(), most_hosts));
  return fmt::format("{} on {} {}{}", kozero::name_ranks(ranks), n_hosts == 1 ? "host" : "hosts",
                     fmt::join(hosts, ", "), many ? fmt::format(" and {} more", n_hosts - most_hosts) : "");
}

std::optional<Verdict> judge(std::span<RankState const> ranks, Patience const& patience) {
  auto lost = ranks_that(
      ranks, [&](auto const& rank) { return rank.link == Link::lost && rank.silent_ticks >= patience.lost; });
  if (!lost.empty()) return Verdict{Fault::lost, std::move(lost)};
  if (!patience.stalled) return std::nullopt;
  std::int64_t const limit = *patience.stalled;
  auto silent = ranks_that(ranks, [&](auto const& rank) { return rank.link == Link::up && rank.silent_ticks > limit; });
  if (!silent.empty()) return Verdict{Fault::silent, std::move(silent)};
  auto idle = ranks_that(ranks, [&](auto const& rank) {
    return rank.link == Link::up && !rank.last.waiting() && rank.last.idle_ticks >= limit;
  });
  if (!idle.empty()) return Verdict{Fault::idle, std::move(idle)};
  return judge_waits(ranks, limit);
}

std::string explain(Verdict const& verdict, std::span<RankState const> ranks, std::int64_t ticks) {
  KOZERO_ASSERT(!verdict.ranks.empty());
  return fmt::format("{} {}:{}", name_ranks(verdict.ranks, ranks), why(verdict.fault, verdict.ranks.size(), ticks),
                     describe_places(ranks));
}

} // namespace kozero::watch
