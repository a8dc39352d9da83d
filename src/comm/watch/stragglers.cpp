#include "comm/watch/stragglers.hpp"

#include "comm/watch/judgement.hpp"
#include "core/error.hpp"

#include <algorithm>

namespace kozero::watch {

namespace {

struct Pace {
  int rank = 0;
  std::int64_t batches = 0;
  double seconds = 0; // a batch
};

} // namespace

void Stragglers::start_window(std::span<RankState const> ranks) {
  begins_.clear();
  for (RankState const& rank : ranks) begins_.push_back({rank.last.batches, rank.last.busy_ns});
  named_.resize(ranks.size());
  ticks_ = 0;
}

std::vector<std::string> Stragglers::look(std::span<RankState const> ranks) {
  if (begins_.empty()) {
    start_window(ranks);
    return {};
  }
  if (++ticks_ < least_ticks) return {};
  std::vector<Pace> paces;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].link != RankState::Link::up) continue;
    std::int64_t const batches = ranks[r].last.batches - begins_[r].batches;
    if (batches < least_batches) return {};
    auto const busy_ns = static_cast<double>(ranks[r].last.busy_ns - begins_[r].busy_ns);
    paces.push_back({static_cast<int>(r), batches, busy_ns / static_cast<double>(batches) / 1e9});
  }
  start_window(ranks);
  if (paces.empty()) return {};
  auto sorted = paces;
  std::ranges::sort(sorted, {}, &Pace::seconds);
  double const median = sorted[(sorted.size() - 1) / 2].seconds; // of two the quicker one
  std::vector<std::string> found;
  for (Pace const& pace : paces) {
    auto const r = static_cast<std::size_t>(pace.rank);
    if (pace.seconds <= factor * median || named_[r]) continue;
    named_[r] = true;
    found.push_back(fmt::format(
        "{} is slow ({:.3g} ms of work a batch, without waiting for the others, where the median of the ranks is "
        "{:.3g} "
        "ms, over {} batches); look for other programs on its processors or device, how it is bound to them, and "
        "clocks and temperatures",
        name_ranks({pace.rank}, ranks), 1e3 * pace.seconds, 1e3 * median, pace.batches));
  }
  return found;
}

} // namespace kozero::watch
