#include "comm/planned_comm.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include "comm/world.hpp"

using namespace kozero;
using namespace kozero::test;

TEST_CASE("a planned communicator takes what the real one of as many ranks takes") {
  Ledger real;
  auto const world = make_world_communicator(real);
  Ledger planned(Ledger::Buffers::counted);
  PlannedComm const comm(planned, world->rank(), world->size());
  CHECK(comm.rank() == world->rank());
  CHECK(comm.size() == world->size());
  CHECK(planned.peak_rows() == real.peak_rows());
  CHECK(real.peak_rows().empty() == (world->size() == 1));
}

TEST_CASE("a planned communicator refuses every collective and exchange") {
  Ledger ledger(Ledger::Buffers::counted);
  PlannedComm comm(ledger, 3, 64);
  Lane const lane;
  Partition const partition(8, 64);
  auto const refused = [](auto const& call) {
    return contains(message_of<Error>(call), {"a plan", "please report it"});
  };
  CHECK(refused([&] { comm.all_gather(lane, {}, partition, Traffic::parameters); }));
  CHECK(refused([&] { comm.reduce_scatter(lane, {}, partition, Traffic::gradients); }));
  CHECK(refused([&] { comm.all_reduce(lane, {}, partition, Traffic::gradients); }));
  CHECK(refused([&] { comm.broadcast(lane, {}, 0, Traffic::control); }));
  CHECK(refused([&] { comm.barrier(); }));
  CHECK(refused([&] { comm.exchange({}, {}); }));
  CHECK(refused([&] { comm.gather(std::int64_t{1}); }));
}
