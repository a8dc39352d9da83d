#include "comm/world.hpp"

#include "comm/mpi_comm.hpp"
#include "comm/self_comm.hpp"

#include <mpi.h>

namespace kozero {

std::unique_ptr<Communicator> make_world_communicator(Ledger& ledger) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1) return std::make_unique<SelfComm>();
  return std::make_unique<MpiComm>(ledger);
}

} // namespace kozero
