#pragma once
#include "comm/collectives.hpp"
#include "comm/mpi_ranks.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace kozero {

struct MpiOptions {
  /// Memory through which sums and device memory pass, whatever the size of the arrays.
  std::int64_t staging_bytes = std::int64_t{32} << 20;
  /// How MPI gets at Space::device: by its address, or through the staging memory with copies in a lane's order.
  /// Or MPI alone reaches it, not the host: then kernels sum, of what comes into device memory.
  enum class DeviceAccess { reached, staged, aware };
  DeviceAccess device = host_reaches_device ? DeviceAccess::reached : DeviceAccess::staged;
  /// Where the group's ranks are; none: all on one host.
  std::optional<RankHosts> hosts = {};
};

/// The staging memory of a rank of so many: options.staging_bytes, rounded down so that it can be cut evenly. Error
/// when that is nothing, or more than a message can count.
PinnedBuffer<unsigned char> staging_memory(Ledger& ledger, MpiOptions const& options, int ranks);
/// As much of the device, where MPI is aware of it.
DeviceBuffer<unsigned char> device_staging_memory(Ledger& ledger, PinnedBuffer<unsigned char> const& staging);

/// Of the ranks that are there, one or several, without NCCL.
std::unique_ptr<Collectives> make_mpi_collectives(Ranks& ranks, Ledger& ledger, MpiOptions const& options);

/// Data of MpiRanks, moved by MPI beside other work: whatever is under way gets on between launches, in progress() and
/// while anybody waits, in any order. MPI only moves data; sums are tree_sum's, on the host.
///
/// Sums, and device memory that MPI does not reach, pass in rounds through a slice of the staging memory (Rounds), with
/// tags of their own. An operation that finds no slice free begins when one is, first come, first served: so the oldest
/// that is not complete has a slice on every rank, and none waits for ever. An all_gather of memory that MPI reaches is
/// one MPI_Iallgatherv, which begins with the call, as MPI wants these in one order. Of device memory that MPI alone
/// reaches the slices are in device memory too, and an all_gather needs none.
///
/// Copies between device and staging memory have a lane of their own. They begin when what the caller's lane was given
/// before has run, and wait() makes its lane run after them; the host waits for none.
class MpiCollectives final : public Collectives {
public:
  /// `ranks` and the ledger must outlive it, and it all that is pending. Nothing but memory is taken: collective it is
  /// not.
  MpiCollectives(MpiRanks& ranks, Ledger& ledger, MpiOptions const& options = {});
  ~MpiCollectives() override;

  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override;
  void progress() override;

private:
  class Operation;
  class GatherInPlace;
  class RoundsThroughSlice;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace kozero
