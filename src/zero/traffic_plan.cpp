#include "zero/traffic_plan.hpp"

#include <map>
#include <utility>

namespace kozero {

namespace {

/// How often each block is gathered in an update of `micro_batches`, where parameters are sharded. The ring keeps the
/// last block of even number, the last of odd number and every shared one; what it keeps is not gathered again. The
/// first micro-batch begins with an empty ring, every other with what the one before it, of the same visits, has left.
std::vector<std::int64_t> gathers_of_blocks(std::vector<UnitUses> const& uses, std::int64_t micro_batches) {
  std::vector<std::int64_t> gathers(uses.size(), 0);
  std::vector<bool> const shared = shared_blocks(uses);
  std::map<std::pair<bool, int>, int> kept; // {shared, number} or {not shared, parity}: the block
  auto const read = [&](int block, std::int64_t times) {
    auto const [place, empty] = kept.try_emplace({shared[block], shared[block] ? block : block % 2}, block);
    if (empty || place->second != block) gathers[block] += times;
    place->second = block;
  };
  auto const visits = training_visits(static_cast<int>(uses.size()));
  for (std::int64_t const alike : {std::int64_t{1}, micro_batches - 1}) {
    for (int i = 0; i < visits.size(); ++i) {
      Visit const visit = visits[i];
      auto const& blocks = visit.phase == Phase::forward ? uses[visit.unit].forward : uses[visit.unit].backward;
      for (int const block : blocks) read(block, alike);
    }
  }
  return gathers;
}

/// `times[b]` all_gathers of block b.
CollectiveTraffic all_gathers(Plan const& plan, ModelLayout const& layout, std::vector<std::int64_t> const& times,
                              std::int64_t element_bytes) {
  CollectiveTraffic traffic{.collective = "all_gather"};
  for (std::size_t b = 0; b < layout.size(); ++b) {
    std::int64_t const lacks = layout[b].size() - plan.partition(layout[b].size()).shard(plan.rank()).size();
    traffic.calls += times[b];
    traffic.bytes += times[b] * lacks * element_bytes;
  }
  return traffic;
}

CollectiveTraffic parameters(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses,
                             UpdateShape const& update) {
  if (plan.optimizer() == Plan::Keep::whole) return {.collective = "none"};
  auto const times = plan.parameters() == Plan::Keep::shard ? gathers_of_blocks(uses, plan.micro_batches())
                                                            : std::vector<std::int64_t>(layout.size(), 1);
  return all_gathers(plan, layout, times, update.parameter_bytes);
}

CollectiveTraffic gradients(Plan const& plan, ModelLayout const& layout, UpdateShape const& update) {
  bool const everywhere = plan.optimizer() == Plan::Keep::whole; // every rank needs all sums
  std::vector<std::int64_t> const times(layout.size(), plan.reductions());
  CollectiveTraffic traffic{.collective = everywhere ? "all_reduce" : "reduce_scatter"};
  for (std::size_t b = 0; b < layout.size(); ++b) {
    std::int64_t const own = plan.partition(layout[b].size()).shard(plan.rank()).size();
    traffic.calls += times[b];
    traffic.bytes += times[b] * (plan.ranks() - 1) * own * update.gradient_bytes;
  }
  if (everywhere) traffic.bytes += all_gathers(plan, layout, times, update.gradient_bytes).bytes;
  return traffic;
}

} // namespace

UpdateTraffic plan_traffic(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses,
                           UpdateShape const& update) {
  return {.parameters = parameters(plan, layout, uses, update),
          .gradients = gradients(plan, layout, update),
          .to_host_bytes = plan.reductions() * update.host_elements * update.gradient_bytes,
          .to_device_bytes = update.host_elements * update.parameter_bytes};
}

} // namespace kozero
