#include "comm/process_grid.hpp"

#include "comm/agree.hpp"

#include <algorithm>

namespace kozero {

ProcessGrid::ProcessGrid(Ranks& world, ParallelConfig const& parallel, Ledger& ledger)
    : shape_(grid_shape(parallel, world.size())) {
  // All ranks come to the same splits: groups of a kind are alike.
  for (GroupKind const kind : {GroupKind::world, GroupKind::state, GroupKind::context, GroupKind::tensor}) {
    groups_[static_cast<std::size_t>(kind)] = &make(shape_.members(kind, world.rank()), world);
  }
  auto const make_all = [&] {
    for (auto const& made : made_) made->collectives = made->ranks.make_collectives(ledger);
    return true;
  };
  if (ledger.allocates()) {
    on_all_ranks(world, make_all); // memory may be short on one rank alone
  } else {
    make_all(); // of ranks that are planned, there are no others
  }
}

ProcessGrid::Made& ProcessGrid::make(std::vector<int> const& members, Ranks& world) {
  auto const same = std::ranges::find(made_, members, [](auto const& made) { return made->members; });
  if (same != made_.end()) return **same;
  std::unique_ptr<Ranks> split;
  if (static_cast<int>(members.size()) < world.size()) split = world.split(members);
  Ranks& ranks = split ? *split : world;
  made_.push_back(std::make_unique<Made>(Made{members, std::move(split), ranks, nullptr}));
  return *made_.back();
}

Group ProcessGrid::group(GroupKind kind) const {
  Made const& made = *groups_[static_cast<std::size_t>(kind)];
  return {made.ranks, *made.collectives};
}

} // namespace kozero
