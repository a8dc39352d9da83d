#pragma once
#include "comm/collectives.hpp"
#include "comm/nccl.hpp"
#include "comm/ranks.hpp"
#include "config/config.hpp"
#include "layout/received.hpp"

namespace kozero {

/// The place of one rank among ranks that need not be there: what a plan hands to objects that want ranks. What would
/// need the others is an error.
///
///     Ledger ledger(Ledger::Buffers::counted);
///     PlannedRanks world(0, 64);
///     ProcessGrid const grid(world, config.parallel, ledger);
class PlannedRanks final : public Ranks {
public:
  PlannedRanks(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override { return "planned"; }
  void barrier() override;
  std::unique_ptr<Ranks> split(std::vector<int> const& members) override;
  std::unique_ptr<Collectives> make_collectives(Ledger& ledger) override;

private:
  void exchange_messages(std::span<Outgoing const> sends, std::span<Incoming const> receives) override;
  void gather_parts(std::span<std::byte> all) override;
  void broadcast_bytes(std::span<std::byte> bytes, int root) override;

  int rank_;
  int size_;
};

/// What a plan takes for the way of data, as it knows neither devices nor libraries of the nodes: nccl for `auto` where
/// the program was built with it.
Transport planned_transport(ParallelConfig const& parallel);
/// NCCL makes sums in two levels where hosts allow it, MPI in one.
ExchangeWay planned_way(Transport transport, RankHosts hosts);

/// What the ranks would exchange by. `shared` as of the groups of a process.
std::unique_ptr<Collectives> plan_collectives(Ranks& ranks, Ledger& ledger, ParallelConfig const& parallel,
                                              MessageLane& shared);

/// Takes the memory that the collectives of so many ranks would. A plan moves nothing: every collective is an error.
class PlannedCollectives final : public Collectives {
public:
  PlannedCollectives(Ledger& ledger, int ranks, Transport transport, MessageLane& shared);

  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override;
  void progress() override {}

private:
  PinnedBuffer<unsigned char> staging_;
  DeviceBuffer<unsigned char> device_staging_;
};

} // namespace kozero
