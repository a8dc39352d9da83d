// Several groups of ranks at once, each with sums, texts and traffic of its own.
#include "comm/planned.hpp"
#include "comm/rank_values.hpp"
#include "support/world.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

/// Grids of so many ranks that have more than one group of some kind.
std::vector<ParallelConfig> cuts(int ranks) {
  std::vector<ParallelConfig> all;
  for (ParallelConfig const& cut :
       {ParallelConfig{.tensor = 2}, ParallelConfig{.context = 2}, ParallelConfig{.tensor = 3},
        ParallelConfig{.tensor = 2, .context = 2}, ParallelConfig{.tensor = 3, .context = 2}}) {
    if (ranks % (cut.tensor * cut.context) == 0) all.push_back(cut);
  }
  return all;
}

struct Named {
  GroupKind kind;
  Group group;
};

std::vector<Named> groups_of(ProcessGrid const& grid) {
  return {{GroupKind::tensor, grid.tensor()},
          {GroupKind::context, grid.context()},
          {GroupKind::state, grid.state()},
          {GroupKind::world, grid.world()}};
}

/// A stream of values that a group has for itself.
std::uint32_t stream_of(std::vector<int> const& members, std::size_t kind) {
  return static_cast<std::uint32_t>(100 * kind) + static_cast<std::uint32_t>(members.front());
}

} // namespace

TEST_CASE("a grid's groups have the members that its shape says, in their order") {
  auto const all = make_world_ranks();
  for (ParallelConfig const& cut : cuts(all->size())) {
    CAPTURE(cut.tensor, cut.context);
    Ledger ledger;
    ProcessGrid const grid(*all, cut, ledger);
    for (auto const& [kind, group] : groups_of(grid)) {
      auto const members = grid.shape().members(kind, all->rank());
      REQUIRE(group.size() == static_cast<int>(members.size()));
      CHECK(members.at(static_cast<std::size_t>(group.rank())) == all->rank());
      auto const told = group.ranks.gather(std::int64_t{all->rank()});
      CHECK(std::vector<int>(told.begin(), told.end()) == members);
    }
  }
}

TEST_CASE("collectives of all groups under way at once have the bits of each alone, and count in their own group") {
  auto const all = make_world_ranks();
  Lane const lane;
  for (ParallelConfig const& cut : cuts(all->size())) {
    CAPTURE(cut.tensor, cut.context);
    Ledger ledger;
    ProcessGrid const grid(*all, cut, ledger);
    auto const groups = groups_of(grid);
    for (auto const& [kind, group] : groups) group.ranks.traffic() = TrafficLedger();
    std::vector<GuardedArray<float>> sums;
    std::vector<GuardedArray<bf16>> gathers;
    std::vector<Pending> pending;
    for (std::size_t k = 0; k < groups.size(); ++k) {
      Group const group = groups[k].group;
      auto const stream = stream_of(grid.shape().members(groups[k].kind, all->rank()), k);
      Partition const partition(1003, group.size());
      fill_addends(sums.emplace_back(1003), stream, group.rank());
      fill_shard(gathers.emplace_back(1003), stream, partition.shard(group.rank()));
      pending.push_back(group.collectives.all_reduce(lane, sums.back().span(), partition, Traffic::gradients));
      pending.push_back(group.collectives.all_gather(lane, gathers.back().span(), partition, Traffic::parameters));
    }
    // Groups do not wait in one order.
    if (all->rank() % 2 == 1) std::ranges::reverse(pending);
    for (Pending& one : pending) one.wait(lane);
    for (std::size_t k = 0; k < groups.size(); ++k) {
      Group const group = groups[k].group;
      auto const stream = stream_of(grid.shape().members(groups[k].kind, all->rank()), k);
      require_summed(sums[k], stream, group.size(), {0, 1003});
      require_gathered(gathers[k], stream);
    }
    for (std::size_t k = 0; k < groups.size(); ++k) {
      Group const group = groups[k].group;
      std::int64_t const own = Partition(1003, group.size()).shard(group.rank()).size();
      auto const twice = // groups of the same ranks are one, and a rank alone receives nothing
          std::ranges::count_if(groups, [&](Named const& n) { return &n.group.collectives == &group.collectives; });
      TrafficLedger const& traffic = group.ranks.traffic();
      CHECK(traffic[Traffic::gradients].elements == twice * (1003 - own + (group.size() - 1) * own));
      CHECK(traffic[Traffic::parameters].elements == twice * (1003 - own));
      CHECK(traffic[Traffic::control].elements == 0);
    }
  }
}

TEST_CASE("control in one group is heard and counted there alone") {
  auto const all = make_world_ranks();
  for (ParallelConfig const& cut : cuts(all->size())) {
    CAPTURE(cut.tensor, cut.context);
    Ledger ledger;
    ProcessGrid const grid(*all, cut, ledger);
    Group const group = grid.tensor().size() > 1 ? grid.tensor() : grid.context();
    auto const first = static_cast<int>(group.ranks.gather(std::int64_t{all->rank()}).front());
    grid.world().ranks.traffic() = group.ranks.traffic() = TrafficLedger();
    std::string text = "of rank " + std::to_string(all->rank());
    group.ranks.broadcast(text, 0);
    CHECK(text == "of rank " + std::to_string(first));
    std::int64_t sum = all->rank();
    group.ranks.sum(std::span(&sum, 1));
    CHECK(sum == group.size() * (group.size() - 1) / 2 *
                         (group.size() > 1 ? (grid.tensor().size() > 1 ? 1 : grid.shape().tensor) : 1) +
                     group.size() * first);
    std::int64_t const heard = group.rank() == 0 ? 0 : 8 + std::ssize(text);
    CHECK(group.ranks.traffic()[Traffic::control].bytes == heard + 8 * (group.size() - 1));
    if (group.size() < all->size()) CHECK(all->traffic()[Traffic::control].bytes == 0);
  }
}

TEST_CASE("groups of the same ranks are one object, with one piece of staging memory") {
  auto const all = make_world_ranks();
  Ledger ledger;
  ProcessGrid const plain(*all, {}, ledger);
  CHECK(&plain.state().collectives == &plain.world().collectives);
  CHECK(&plain.state().ranks == &plain.world().ranks);
  CHECK(&plain.tensor().collectives == (all->size() == 1 ? &plain.world().collectives : &plain.context().collectives));
  CHECK(plain.tensor().ranks.description() == "self");
  Ledger one;
  MessageLane lane;
  auto const collectives = plan_collectives(*all, one, {}, lane);
  CHECK(ledger.peak_rows() == one.peak_rows());
}

TEST_CASE("a group can be cut again, in another order") {
  auto const all = make_world_ranks();
  int const n = all->size();
  std::vector<int> parity; // the ranks of this one's parity, last first
  for (int rank = n - 1; rank >= 0; --rank) {
    if (rank % 2 == all->rank() % 2) parity.push_back(rank);
  }
  auto const half = all->split(parity);
  CHECK(half->rank() == static_cast<int>(parity.size()) - 1 - all->rank() / 2);
  // All but the last of a half, and the last alone.
  std::vector<int> first;
  for (int rank = 0; rank + 1 < half->size(); ++rank) first.push_back(rank);
  bool const last = half->rank() + 1 == half->size();
  auto const part = half->split(last ? std::vector{half->rank()} : first);
  CHECK(part->size() == (last ? 1 : half->size() - 1));
  auto const told = part->gather(std::string(1, static_cast<char>('a' + all->rank())));
  for (std::size_t r = 0; r < told.size(); ++r) {
    int const in_half = last ? half->rank() : static_cast<int>(r);
    CHECK(told[r] == std::string(1, static_cast<char>('a' + parity[static_cast<std::size_t>(in_half)])));
  }
  all->barrier();
}

TEST_CASE("a grid that does not fit the ranks is refused on all") {
  auto const all = make_world_ranks();
  Ledger ledger;
  CHECK_THROWS_AS(ProcessGrid(*all, {.tensor = all->size() + 1}, ledger), SharedError);
}
