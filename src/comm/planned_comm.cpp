#include "comm/planned_comm.hpp"

#include "comm/mpi_comm.hpp"
#include "core/error.hpp"

namespace kozero {

namespace {

[[noreturn]] void refuse(char const* collective) {
  throw Error(fmt::format("a plan was to do {} (a fault of kozero); please report it", collective));
}

} // namespace

PlannedComm::PlannedComm(Ledger& ledger, int rank, int ranks) : rank_(rank), ranks_(ranks) {
  if (ranks > 1) staging_ = staging_memory(ledger, {}, ranks); // one rank is SelfComm's, which has none
}

Pending PlannedComm::all_gather(Lane const&, Span, Partition const&, Traffic) { refuse("all_gather"); }
Pending PlannedComm::reduce_scatter(Lane const&, Span, Partition const&, Traffic) { refuse("reduce_scatter"); }
Pending PlannedComm::all_reduce(Lane const&, Span, Partition const&, Traffic) { refuse("all_reduce"); }
Pending PlannedComm::broadcast(Lane const&, Span, int, Traffic) { refuse("broadcast"); }
void PlannedComm::barrier() { refuse("barrier"); }
void PlannedComm::exchange(std::span<Outgoing const>, std::span<Incoming const>) { refuse("exchange"); }

} // namespace kozero
