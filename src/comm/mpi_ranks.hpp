#pragma once
#include "comm/ranks.hpp"

namespace kozero {

/// Whether the MPI library says that it takes addresses of device memory; true where the device is the host.
bool mpi_reaches_devices();

/// Ranks that MPI knows, in a communicator of their own, so that no message meets those of somebody else. Waiting polls
/// and yields the processor, so that more ranks than processors still get on, and gets on with the collectives that are
/// under way meanwhile: another rank may need these to come where this one waits for it.
///
/// An MPI call that fails throws an Error with the call's name and MPI's own words. Freeing a communicator is
/// collective, so the destructor leaves that out while an exception unwinds (see Pending): MPI_Abort follows.
class MpiRanks final : public Ranks {
public:
  struct Communicator; // comm/mpi_calls.hpp

  /// All of MPI_COMM_WORLD.
  MpiRanks();
  explicit MpiRanks(std::unique_ptr<Communicator> communicator);
  ~MpiRanks() override;

  int rank() const override;
  int size() const override;
  std::string description() const override;
  void barrier() override;
  /// SelfRanks where a group has one member.
  std::unique_ptr<Ranks> split(std::vector<int> const& members) override;
  std::unique_ptr<Collectives> make_collectives(Ledger& ledger) override;

  Communicator const& communicator() const { return *communicator_; }

private:
  void exchange_messages(std::span<Outgoing const> sends, std::span<Incoming const> receives) override;
  void gather_parts(std::span<std::byte> all) override;
  void broadcast_bytes(std::span<std::byte> bytes, int root) override;

  std::unique_ptr<Communicator> communicator_;
};

} // namespace kozero
