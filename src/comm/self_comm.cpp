#include "comm/self_comm.hpp"

namespace kozero {

namespace {

Pending done(Span const& whole, Partition const& partition) {
  KOZERO_ASSERT(partition.ranks() == 1 && whole.count >= partition.size());
  return {};
}

} // namespace

Pending SelfComm::all_gather(Lane const&, Span whole, Partition const& partition, Traffic) {
  return done(whole, partition);
}

Pending SelfComm::reduce_scatter(Lane const&, Span whole, Partition const& partition, Traffic) {
  return done(whole, partition);
}

Pending SelfComm::all_reduce(Lane const&, Span whole, Partition const& partition, Traffic) {
  return done(whole, partition);
}

Pending SelfComm::broadcast(Lane const&, Span, int root, Traffic) {
  KOZERO_ASSERT(root == 0);
  return {};
}

void SelfComm::exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives) {
  KOZERO_ASSERT(sends.empty() && receives.empty()); // there is no other rank
}

} // namespace kozero
