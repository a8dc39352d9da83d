// More ranks than elements, and many empty shards: CASES 2 at the level of collectives.
#include "comm/rank_values.hpp"
#include "comm/world.hpp"

using namespace kozero;
using namespace kozero::test;

TEST_CASE("many ranks with little or nothing each agree on every bit") {
  Ledger ledger;
  auto const comm = make_world_communicator(ledger);
  Lane const lane;
  for (std::int64_t const size : {0, 1, 5, 24, 177}) {
    INFO("size " << size);
    Partition const partition(size, comm->size());
    auto const stream = static_cast<std::uint32_t>(size);
    GuardedArray<float> grads(size);
    fill_addends(grads, stream, comm->rank());
    comm->all_reduce(lane, grads.span(), partition, Traffic::gradients).wait(lane);
    require_summed(grads, stream, comm->size(), {0, size});
    GuardedArray<bf16> params(size);
    fill_shard(params, stream, partition.shard(comm->rank()));
    comm->all_gather(lane, params.span(), partition, Traffic::parameters).wait(lane);
    require_gathered(params, stream);
  }
  std::vector<double> values{addend<double>(1000, comm->rank(), 0)};
  comm->sum(std::span(values));
  CHECK(same_bits(values[0], sum_over_ranks<double>(1000, comm->size(), 0)));
}
