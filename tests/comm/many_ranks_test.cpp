// More ranks than elements, and many empty shards: CASES 2 at the level of collectives.
#include "comm/rank_values.hpp"
#include "support/world.hpp"

using namespace kozero;
using namespace kozero::test;

TEST_CASE_METHOD(World, "many ranks with little or nothing each agree on every bit") {
  Lane const lane;
  for (std::int64_t const size : {0, 1, 5, 24, 177}) {
    INFO("size " << size);
    Partition const partition(size, world.size());
    auto const stream = static_cast<std::uint32_t>(size);
    GuardedArray<float> grads(size);
    fill_addends(grads, stream, world.rank());
    world.collectives.all_reduce(lane, grads.span(), partition, Traffic::gradients).wait(lane);
    require_summed(grads, stream, world.size(), {0, size});
    GuardedArray<bf16> params(size);
    fill_shard(params, stream, partition.shard(world.rank()));
    world.collectives.all_gather(lane, params.span(), partition, Traffic::parameters).wait(lane);
    require_gathered(params, stream);
  }
  std::vector<double> values{addend<double>(1000, world.rank(), 0)};
  world.ranks.sum(std::span(values));
  CHECK(same_bits(values[0], sum_over_ranks<double>(1000, world.size(), 0)));
}
