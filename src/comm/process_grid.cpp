#include "comm/process_grid.hpp"

#include "comm/agree.hpp"
#include "comm/planned.hpp"
#include "comm/transport.hpp"

#include <algorithm>

namespace kozero {

ProcessGrid::ProcessGrid(Ranks& world, ParallelConfig const& parallel, Ledger& ledger)
    : shape_(grid_shape(parallel, world.size())) {
  // All ranks come to the same splits: groups of a kind are alike.
  for (GroupKind const kind : {GroupKind::world, GroupKind::state, GroupKind::context, GroupKind::tensor}) {
    groups_[static_cast<std::size_t>(kind)] = &make(shape_.members(kind, world.rank()), world);
  }
  auto const lane = std::make_shared<MessageLane>();
  if (!ledger.allocates()) { // of ranks that are planned, there are no others
    for (auto const& made : made_) made->collectives = plan_collectives(made->ranks, ledger, parallel, *lane);
    return;
  }
  TransportChoice const choice = choose_transport(world, parallel);
  for (auto const& made : made_) { // memory may be short on one rank alone, or one group have a bad device
    share_failure(world, failure_of([&] {
                    made->collectives = make_collectives(made->ranks, made->members, ledger, choice, lane);
                  }));
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
