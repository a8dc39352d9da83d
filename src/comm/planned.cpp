#include "comm/planned.hpp"

#include "comm/mpi_collectives.hpp"
#include "comm/self_collectives.hpp"
#include "comm/self_ranks.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <utility>

namespace kozero {

namespace {

[[noreturn]] void refuse(char const* collective) {
  throw Error(fmt::format("a plan was to do {} (a fault of kozero); please report it", collective));
}

} // namespace

void PlannedRanks::barrier() { refuse("barrier"); }
void PlannedRanks::exchange_messages(std::span<Outgoing const>, std::span<Incoming const>) { refuse("exchange"); }
void PlannedRanks::gather_parts(std::span<std::byte>) { refuse("gather"); }
void PlannedRanks::broadcast_bytes(std::span<std::byte>, int) { refuse("broadcast"); }

std::unique_ptr<Ranks> PlannedRanks::split(std::vector<int> const& members) {
  auto const self = std::ranges::find(members, rank_);
  KOZERO_ASSERT(self != members.end());
  if (members.size() == 1) return std::make_unique<SelfRanks>();
  return std::make_unique<PlannedRanks>(static_cast<int>(self - members.begin()), static_cast<int>(members.size()));
}

std::unique_ptr<Collectives> PlannedRanks::make_collectives(Ledger& ledger) {
  MessageLane none;
  return plan_collectives(*this, ledger, {.transport = Transport::mpi}, none);
}

Transport planned_transport(ParallelConfig const& parallel) {
  if (parallel.transport != Transport::automatic) return parallel.transport;
  return built_with_nccl() ? Transport::nccl : Transport::mpi;
}

ExchangeWay planned_way(Transport transport, RankHosts hosts) {
  auto const near = transport == Transport::nccl ? hosts.ranks_of_each() : std::nullopt;
  return {.hosts = std::move(hosts), .ranks_of_host = near};
}

std::unique_ptr<Collectives> plan_collectives(Ranks& ranks, Ledger& ledger, ParallelConfig const& parallel,
                                              MessageLane& shared) {
  if (ranks.size() == 1) return std::make_unique<SelfCollectives>();
  return std::make_unique<PlannedCollectives>(ledger, ranks.size(), planned_transport(parallel), shared);
}

PlannedCollectives::PlannedCollectives(Ledger& ledger, int ranks, Transport transport, MessageLane& shared) {
  if (transport == Transport::nccl) {
    shared.take(ledger);
    return;
  }
  staging_ = staging_memory(ledger, {}, ranks);
  if (transport == Transport::mpi_device) device_staging_ = device_staging_memory(ledger, staging_);
}

Pending PlannedCollectives::all_gather(Lane const&, Span, Partition const&, Traffic) { refuse("all_gather"); }
Pending PlannedCollectives::reduce_scatter(Lane const&, Span, Partition const&, Traffic) { refuse("reduce_scatter"); }
Pending PlannedCollectives::all_reduce(Lane const&, Span, Partition const&, Traffic) { refuse("all_reduce"); }
Pending PlannedCollectives::broadcast(Lane const&, Span, int, Traffic) { refuse("broadcast"); }

} // namespace kozero
