// Our collectives beside MPI's own on the same sizes. MPI's reduction may sum in any order; ours has one (ADR 6).
#include "bench/pair.hpp"
#include "comm/process_grid.hpp"

#include <mpi.h>

namespace {

using namespace kozero;
using namespace kozero::bench;

/// Zeros, whose sums stay zeros however often they are made.
struct Arrays {
  explicit Arrays(std::int64_t count)
      : all(make_world_ranks()), grid(*all, {}, ledger), world(grid.world()), partition(count, world.size()),
        whole(ledger, Category::gradients, "bench", partition.capacity()),
        shard(ledger, Category::gradients, "bench", partition.shard_capacity()) {}

  Span span() const { return {whole.data(), partition.size(), DType::f32, Space::device}; }
  int shard_count() const { return static_cast<int>(partition.shard_capacity()); }
  float* own_shard() const { return whole.data() + world.rank() * partition.shard_capacity(); }

  Ledger ledger;
  Lane lane;
  std::unique_ptr<Ranks> all;
  ProcessGrid grid;
  Group world;
  Partition partition;
  DeviceBuffer<float> whole, shard;
};

/// Ranks start together, so that none is measured waiting for another's turn.
void measure_collective(benchmark::State& state, Arrays const& arrays, auto const& ours, auto const& other) {
  if (arrays.world.size() == 1) return state.SkipWithError("one rank has nobody to talk to; run under mpiexec");
  measure_pair(
      state,
      [&] {
        ours().wait(arrays.lane);
        arrays.lane.fence("bench");
        arrays.world.ranks.barrier();
      },
      [&] {
        other();
        arrays.world.ranks.barrier();
      });
}

void reduce_scatter(benchmark::State& state) {
  Arrays const arrays(state.range(0));
  measure_collective(
      state, arrays,
      [&] {
        return arrays.world.collectives.reduce_scatter(arrays.lane, arrays.span(), arrays.partition,
                                                       Traffic::gradients);
      },
      [&] {
        MPI_Reduce_scatter_block(arrays.whole.data(), arrays.shard.data(), arrays.shard_count(), MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD);
      });
}

void all_gather(benchmark::State& state) {
  Arrays const arrays(state.range(0));
  measure_collective(
      state, arrays,
      [&] {
        return arrays.world.collectives.all_gather(arrays.lane, arrays.span(), arrays.partition, Traffic::parameters);
      },
      [&] {
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, arrays.whole.data(), arrays.shard_count(), MPI_FLOAT, MPI_COMM_WORLD);
      });
}

void all_reduce(benchmark::State& state) {
  Arrays const arrays(state.range(0));
  measure_collective(
      state, arrays,
      [&] {
        return arrays.world.collectives.all_reduce(arrays.lane, arrays.span(), arrays.partition, Traffic::gradients);
      },
      [&] {
        MPI_Allreduce(MPI_IN_PLACE, arrays.whole.data(), static_cast<int>(arrays.partition.size()), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      });
}

/// 64 KiB, and a layer of GPT-2 124M. All ranks must run as often.
void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("floats")->Arg(1 << 14)->Arg(7'087'872)->Iterations(30)->UseManualTime();
  benchmark->Unit(benchmark::kMicrosecond);
}
BENCHMARK(reduce_scatter)->Name("collectives/reduce_scatter")->Apply(sizes);
BENCHMARK(all_gather)->Name("collectives/all_gather")->Apply(sizes);
BENCHMARK(all_reduce)->Name("collectives/all_reduce")->Apply(sizes);

} // namespace
