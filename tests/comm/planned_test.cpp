#include "comm/planned.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "support/world.hpp"

using namespace kozero;
using namespace kozero::test;

TEST_CASE_METHOD(World, "a planned grid takes what the real one of as many ranks takes") {
  Ledger planned(Ledger::Buffers::counted);
  PlannedRanks ranks(world.rank(), world.size());
  ProcessGrid const planned_grid(ranks, {}, planned);
  CHECK(planned_grid.world().rank() == world.rank());
  CHECK(planned_grid.world().size() == world.size());
  CHECK(planned.peak_rows() == ledger.peak_rows());
  CHECK(ledger.peak_rows().empty() == (world.size() == 1));
}

TEST_CASE("planned ranks are cut as real ones are") {
  PlannedRanks world(5, 64);
  auto const group = world.split({1, 5, 9});
  CHECK(group->rank() == 1);
  CHECK(group->size() == 3);
  CHECK(world.split({5})->description() == "self");
}

TEST_CASE("planned ranks and collectives refuse all that needs others") {
  Ledger ledger(Ledger::Buffers::counted);
  PlannedRanks ranks(3, 64);
  auto const collectives = ranks.make_collectives(ledger);
  Lane const lane;
  Partition const partition(8, 64);
  auto const refused = [](auto const& call) {
    return contains(message_of<Error>(call), {"a plan", "please report it"});
  };
  CHECK(refused([&] { collectives->all_gather(lane, {}, partition, Traffic::parameters); }));
  CHECK(refused([&] { collectives->reduce_scatter(lane, {}, partition, Traffic::gradients); }));
  CHECK(refused([&] { collectives->all_reduce(lane, {}, partition, Traffic::gradients); }));
  CHECK(refused([&] { collectives->broadcast(lane, {}, 0, Traffic::control); }));
  CHECK(refused([&] { ranks.barrier(); }));
  CHECK(refused([&] { ranks.exchange({}, {}); }));
  CHECK(refused([&] { ranks.gather(std::int64_t{1}); }));
  std::string text;
  CHECK(refused([&] { ranks.broadcast(text, 0); }));
}

TEST_CASE("the transport is the deck's, and of auto NCCL where the program has it") {
  CHECK(planned_transport({.transport = Transport::nccl}) == Transport::nccl);
  CHECK(planned_transport({.transport = Transport::mpi}) == Transport::mpi);
  CHECK(planned_transport({.transport = Transport::mpi_device}) == Transport::mpi_device);
  CHECK(planned_transport({}) == (built_with_nccl() ? Transport::nccl : Transport::mpi));
}

TEST_CASE("NCCL alone makes sums in two levels, and only where hosts allow it") {
  for (Transport const transport : {Transport::mpi, Transport::mpi_device}) {
    CHECK(planned_way(transport, RankHosts::runs_of(4, 16)).ranks_of_host == std::nullopt);
  }
  CHECK(planned_way(Transport::nccl, RankHosts::runs_of(4, 16)).ranks_of_host == 4);
  CHECK(planned_way(Transport::nccl, RankHosts::runs_of(3, 12)).ranks_of_host == std::nullopt);
  CHECK(planned_way(Transport::nccl, RankHosts(16)).ranks_of_host == std::nullopt);
  CHECK(!planned_way(Transport::nccl, RankHosts::runs_of(4, 16)).hosts.together(3, 4));
}
