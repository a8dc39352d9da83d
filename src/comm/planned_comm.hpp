#pragma once
#include "comm/communicator.hpp"

namespace kozero {

/// The place of one rank among ranks that need not be there: what a plan hands to objects that want a communicator.
/// It takes the memory that make_world_communicator's would. Every collective and exchange is an error: a plan moves
/// nothing.
///
///     Ledger ledger(Ledger::Buffers::counted);
///     PlannedComm comm(ledger, 0, 64);
class PlannedComm final : public Communicator {
public:
  PlannedComm(Ledger& ledger, int rank, int ranks);

  int rank() const override { return rank_; }
  int size() const override { return ranks_; }
  std::string description() const override { return "planned"; }

  using Communicator::broadcast;
  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override;
  void barrier() override;
  void exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives) override;

private:
  int rank_;
  int ranks_;
  PinnedBuffer<unsigned char> staging_;
};

} // namespace kozero
