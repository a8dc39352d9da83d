#pragma once
#include "comm/communicator.hpp"

#include <cstdint>
#include <memory>

namespace kozero {

struct MpiCommOptions {
  /// Memory through which sums and device memory pass, whatever the size of the arrays.
  std::int64_t staging_bytes = std::int64_t{32} << 20;
  /// How MPI gets at Space::device: by its address, or through the staging memory with copies in the lane's order.
  enum class DeviceMemory { reached, staged };
  DeviceMemory device = host_reaches_device ? DeviceMemory::reached : DeviceMemory::staged;
};

/// The staging memory of a rank of so many: options.staging_bytes, rounded down so that it can be cut evenly. Error
/// when that is nothing, or more than a message can count.
PinnedBuffer<unsigned char> staging_memory(Ledger& ledger, MpiCommOptions const& options, int ranks);

/// All ranks of MPI_COMM_WORLD, on a duplicate of it, so that no message meets those of somebody else.
///
/// reduce_scatter exchanges pieces between all pairs of ranks and sums them where they belong, in rounds that fit the
/// staging memory; the next round's messages are under way while one is summed. all_gather is one nonblocking
/// MPI_Iallgatherv in place, finished by Pending::wait. Everything else, and what has to be staged, is done when the
/// call returns. Waiting polls and yields the processor, so that more ranks than processors still get on.
///
/// An MPI call that fails throws an Error with the call's name and MPI's own words. Freeing a communicator is
/// collective, so the destructor leaves that out while an exception unwinds (see Pending): MPI_Abort follows.
class MpiComm final : public Communicator {
public:
  explicit MpiComm(Ledger& ledger, MpiCommOptions const& options = {});
  ~MpiComm() override;

  int rank() const override;
  int size() const override;
  std::string description() const override;

  using Communicator::broadcast;
  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override;
  void barrier() override;
  void exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives) override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace kozero
