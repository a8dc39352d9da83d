// A step of AdamW beside a loop that moves as many bytes and computes next to nothing.
#include "optim/adamw.hpp"
#include "bench/pair.hpp"

namespace {

using namespace kozero;
using namespace kozero::bench;

/// Reads and writes three arrays.
void probe(Lane const& lane, float* a, float* b, float* c, std::int64_t count) {
  launch(
      lane, "kozero::bench::probe", Range{count}, KOKKOS_LAMBDA(std::int64_t i) {
        float const x = a[i];
        a[i] = b[i];
        b[i] = c[i];
        c[i] = x;
      });
  lane.fence("bench");
}

/// T is the compute type, G that of gradients.
template <class T, class G>
void step(benchmark::State& state) {
  std::int64_t const count = state.range(0);
  // Master, m and v in and out, the gradient in, the parameter out and, before it, in: a part of a line is written.
  constexpr std::int64_t step_bytes = 2 * 3 * sizeof(float) + sizeof(G) + 2 * sizeof(T);
  constexpr std::int64_t probe_bytes = 2 * 3 * sizeof(float);
  std::int64_t const probe_count = count * step_bytes / probe_bytes;
  Ledger ledger;
  Lane const lane;
  auto const master = numbers<float>(ledger, probe_count);
  auto const m = numbers<float>(ledger, probe_count);
  auto const v = DeviceBuffer<float>(ledger, Category::second_moment, "bench", probe_count);
  auto const gradient = numbers<G>(ledger, count);
  auto const parameter = numbers<T>(ledger, count);
  AdamWScalars const scalars(OptimizerConfig(), 1e-4, 10, 1.0);
  AdamWShard<T> const shard{count,    count,           master.data(), m.data(),
                            v.data(), gradient.data(), dtype_of<G>,   parameter.data()};
  auto const a = numbers<float>(ledger, probe_count);
  auto const b = numbers<float>(ledger, probe_count);
  auto const c = numbers<float>(ledger, probe_count);
  measure_pair(
      state,
      [&] {
        adamw_step(lane, shard, scalars);
        lane.fence("bench");
      },
      [&] { probe(lane, a.data(), b.data(), c.data(), probe_count); });
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("parameters")->Arg(1 << 16)->Arg(1 << 23)->UseManualTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK(step<float, float>)->Name("adamw/fp32/gradients_fp32")->Apply(sizes);
BENCHMARK(step<bf16, float>)->Name("adamw/bf16/gradients_fp32")->Apply(sizes);
BENCHMARK(step<bf16, bf16>)->Name("adamw/bf16/gradients_bf16")->Apply(sizes);

} // namespace
