#pragma once
#include "comm/collectives.hpp"

namespace kozero {

/// One rank alone: its arrays hold the results already. Takes no memory, needs no MPI.
class SelfCollectives final : public Collectives {
public:
  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override;
  void progress() override {}
};

} // namespace kozero
