#include "comm/process_grid.hpp"

#include "comm/agree.hpp"
#include "comm/planned.hpp"
#include "comm/transport.hpp"
#include "core/device.hpp"
#include "core/format.hpp"
#include "core/log.hpp"

#include <algorithm>
#include <optional>

namespace kozero {

namespace {

/// Of ranks that are planned, there are no others to agree with.
GridShape agreed_shape(Ranks& world, ParallelConfig const& parallel, Ledger const& ledger) {
  auto const shape = [&] { return grid_shape(parallel, world.size()); };
  return ledger.allocates() ? on_all_ranks(world, shape) : shape();
}

/// Memory of devices that goes while it lives and that the ledger does not count. Collective.
class UncountedMemory {
public:
  UncountedMemory(Ranks& world, Ledger const& ledger) : world_(world), ledger_(ledger), before_(taken()) {}

  /// Of the rank with most; nothing where the device is the host.
  void tell(char const* who) const {
    auto const after = taken();
    if (!after) return;
    auto const most = std::ranges::max(world_.gather(std::max<std::int64_t>(*after - *before_, 0)));
    if (world_.rank() == 0)
      log::info("{} holds {} of a device for itself, beside what is planned", who, format_bytes(most));
  }

private:
  /// Against a point that stays.
  std::optional<std::int64_t> taken() const {
    auto const free = on_all_ranks(world_, free_device_memory);
    if (!free) return std::nullopt;
    return -*free - ledger_.bytes(Space::device);
  }

  Ranks& world_;
  Ledger const& ledger_;
  std::optional<std::int64_t> before_;
};

} // namespace

ProcessGrid::ProcessGrid(Ranks& world, ParallelConfig const& parallel, Ledger& ledger)
    : shape_(agreed_shape(world, parallel, ledger)) {
  // All ranks come to the same splits: groups of a kind are alike.
  for (GroupKind const kind : {GroupKind::world, GroupKind::state, GroupKind::context, GroupKind::tensor}) {
    groups_[static_cast<std::size_t>(kind)] = &make(shape_.members(kind, world.rank()), world);
  }
  auto const lane = std::make_shared<MessageLane>();
  if (!ledger.allocates()) {
    for (auto const& made : made_) made->collectives = plan_collectives(made->ranks, ledger, parallel, *lane);
    return;
  }
  TransportChoice const choice = choose_transport(world, parallel);
  UncountedMemory const uncounted(world, ledger);
  for (auto const& made : made_) { // memory may be short on one rank alone, or one group have a bad device
    share_failure(world, failure_of([&] {
                    made->collectives = make_collectives(made->ranks, made->members, ledger, choice, lane);
                  }));
  }
  if (choice.transport == Transport::nccl) uncounted.tell("NCCL");
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
