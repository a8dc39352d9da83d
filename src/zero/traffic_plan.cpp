#include "zero/traffic_plan.hpp"

#include "core/error.hpp"

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

/// What `times[b]` calls of a collective for each block b bring this rank. Blocks of one size are alike and counted
/// once, as there may be many of them, and many ranks to count over.
template <class ReceivedIn>
CollectiveTraffic calls(std::string collective, Plan const& plan, ModelLayout const& layout,
                        std::vector<std::int64_t> const& times, MessageCount const& messages,
                        ReceivedIn const& received_in) {
  CollectiveTraffic traffic{.collective = std::move(collective)};
  std::map<std::int64_t, Received> known; // by size
  for (std::size_t b = 0; b < layout.size(); ++b) {
    auto const [place, is_new] = known.try_emplace(layout[b].size());
    if (is_new) place->second = received_in(plan.partition(layout[b].size()), plan.rank());
    Received const all = times[b] * place->second;
    traffic.calls += times[b];
    traffic.bytes += all.bytes;
    traffic.between_hosts_bytes += all.between_hosts_bytes;
    traffic.messages += times[b] * messages.all;
    traffic.between_hosts_messages += times[b] * messages.between_hosts;
  }
  traffic.first_block = known[layout.front().size()];
  return traffic;
}

CollectiveTraffic parameters(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses,
                             std::int64_t element_bytes, ExchangeWay const& way) {
  if (plan.optimizer() == Plan::Keep::whole) return {.collective = "none"};
  auto const times = plan.parameters() == Plan::Keep::shard ? gathers_of_blocks(uses, plan.micro_batches())
                                                            : std::vector<std::int64_t>(layout.size(), 1);
  return calls("all_gather", plan, layout, times, messages_of(way, plan.rank()),
               [&](Partition const& partition, int rank) {
                 return received_in_all_gather(partition, rank, way, {.moved = element_bytes});
               });
}

CollectiveTraffic gradients(Plan const& plan, ModelLayout const& layout, std::int64_t element_bytes,
                            ExchangeWay const& way) {
  ElementBytes const element{.moved = element_bytes}; // partial sums of 16 bits are fp32
  std::vector<std::int64_t> const times(layout.size(), plan.reductions());
  MessageCount const messages = messages_of(way, plan.rank());
  if (plan.optimizer() == Plan::Keep::whole) { // every rank needs all sums
    MessageCount const both{2 * messages.all, 2 * messages.between_hosts};
    return calls("all_reduce", plan, layout, times, both, [&](Partition const& partition, int rank) {
      return received_in_all_reduce(partition, rank, way, element);
    });
  }
  return calls("reduce_scatter", plan, layout, times, messages, [&](Partition const& partition, int rank) {
    return received_in_reduce_scatter(partition, rank, way, element);
  });
}

} // namespace

MessageCount messages_of(ExchangeWay const& way, int rank) {
  int const ranks = way.hosts.ranks();
  if (way.ranks_of_host) {
    std::int64_t const near = *way.ranks_of_host;
    std::int64_t const hosts = ranks / near;
    return {.all = (near - 1) * hosts + hosts - 1, .between_hosts = hosts - 1};
  }
  MessageCount count{.all = ranks - 1};
  for (int other = 0; other < ranks; ++other) count.between_hosts += way.hosts.together(rank, other) ? 0 : 1;
  return count;
}

UpdateTraffic plan_traffic(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses,
                           UpdateShape const& update) {
  ExchangeWay const way = update.way.value_or(ExchangeWay{.hosts = RankHosts(plan.ranks())});
  KOZERO_ASSERT(way.hosts.ranks() == plan.ranks());
  return {.parameters = parameters(plan, layout, uses, update.parameter_bytes, way),
          .gradients = gradients(plan, layout, update.gradient_bytes, way),
          .to_host_bytes = plan.reductions() * update.host_elements * update.gradient_bytes,
          .to_device_bytes = update.host_elements * update.parameter_bytes};
}

} // namespace kozero
