#pragma once
#include "comm/collectives.hpp"
#include "comm/nccl.hpp"

#include <memory>

namespace kozero {

/// Device memory, moved between devices by NCCL. It only moves: sums are tree_sum's, made by kernels from what has
/// come, in rounds through the memory of the MessageLane (NcclRound). So bits are those of MpiCollectives.
///
/// All messages and sums of a process have one lane, which begins with each when the caller's lane has come there, and
/// which wait() makes a lane run after: the host waits for nothing. What pinned and host memory hold is moved by MPI.
///
/// An error that NCCL finds out about later ends what is under way, and comes out of the next call, fence or wait.
class NcclCollectives final : public Collectives {
public:
  /// Collective. An error of one rank is all ranks'.
  NcclCollectives(Ranks& ranks, Ledger& ledger, std::shared_ptr<MessageLane> shared, NcclOptions const& options);
  ~NcclCollectives() override;

  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override;
  void progress() override;
  void abandon() noexcept override;

private:
  class Operation;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace kozero
