#pragma once
#include "comm/communicator.hpp"

#include <cstdint>
#include <memory>

namespace kozero {

/// A communicator of all ranks: SelfComm where there is one, for which messages to itself and memory to stage them
/// would be wasted, else MpiComm. Collective; MPI must be up. The ledger must outlive it.
std::unique_ptr<Communicator> make_world_communicator(Ledger& ledger);

} // namespace kozero
