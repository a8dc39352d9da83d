#pragma once
#include "comm/collectives.hpp"
#include "comm/mpi_ranks.hpp"

#include <cstdint>
#include <memory>

namespace kozero {

struct MpiOptions {
  /// Memory through which sums and device memory pass, whatever the size of the arrays.
  std::int64_t staging_bytes = std::int64_t{32} << 20;
  /// How MPI gets at Space::device: by its address, or through the staging memory with copies in a lane's order.
  enum class DeviceMemory { reached, staged };
  DeviceMemory device = host_reaches_device ? DeviceMemory::reached : DeviceMemory::staged;
};

/// The staging memory of a rank of so many: options.staging_bytes, rounded down so that it can be cut evenly. Error
/// when that is nothing, or more than a message can count.
PinnedBuffer<unsigned char> staging_memory(Ledger& ledger, MpiOptions const& options, int ranks);

class MpiCollectives final : public Collectives {
public:
  MpiCollectives(MpiRanks& ranks, Ledger& ledger, MpiOptions const& options = {});
  ~MpiCollectives() override;

  Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) override;
  Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) override;
  void progress() override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace kozero
