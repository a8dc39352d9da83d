#pragma once
#include "comm/communicator.hpp"

namespace kozero {

/// One rank alone: its arrays hold the results already. Takes no memory, needs no MPI.
class SelfComm final : public Communicator {
public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "self"; }

  using Communicator::broadcast;
  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override;
  void barrier() override {}
  void exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives) override;
};

} // namespace kozero
