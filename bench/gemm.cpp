// The products of GPT-2 124M for 1024 tokens: our gemm beside one call of oneDNN with all threads.
#include "kernels/gemm.hpp"
#include "bench/pair.hpp"

#include <oneapi/dnnl/dnnl.h>

namespace {

using namespace kozero;
using namespace kozero::bench;

/// c[m,n] = a[m,k] · b[k,n], where b is stored as [n,k] in a forward pass; and with a stored as [k,m] for weights.
enum class Pass { forward, input_gradient, weight_gradient };

template <class T, Pass pass>
void product(benchmark::State& state) {
  std::int64_t const m = state.range(0);
  std::int64_t const n = state.range(1);
  std::int64_t const k = state.range(2);
  using Read = typename Operand<T>::Read;
  Read const read_a = pass == Pass::weight_gradient ? Read::transposed : Read::plain;
  Read const read_b = pass == Pass::forward ? Read::transposed : Read::plain;
  std::int64_t const stride_a = read_a == Read::plain ? k : m;
  std::int64_t const stride_b = read_b == Read::plain ? n : k;

  Ledger ledger;
  Lane const lane;
  auto const a = numbers<T>(ledger, m * k);
  auto const b = numbers<T>(ledger, k * n);
  auto const c = numbers<float>(ledger, m * n);
  auto const plain_a = numbers<float>(ledger, m * k);
  auto const plain_b = numbers<float>(ledger, k * n);
  measure_pair(
      state,
      [&] {
        gemm<T, float>(lane, m, n, k, c.data(), n, {a.data(), stride_a, read_a}, {b.data(), stride_b, read_b}, nullptr,
                       Into::overwrite);
        lane.fence("bench");
      },
      [&] {
        dnnl_sgemm(read_a == Read::plain ? 'N' : 'T', read_b == Read::plain ? 'N' : 'T', m, n, k, 1.0f, plain_a.data(),
                   stride_a, plain_b.data(), stride_b, 0.0f, c.data(), n);
      });
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"m", "n", "k"})->UseManualTime()->Unit(benchmark::kMillisecond);
}
void forward_shapes(benchmark::internal::Benchmark* benchmark) {
  shapes(benchmark);
  benchmark->Args({1024, 2304, 768})->Args({1024, 768, 768})->Args({1024, 3072, 768})->Args({1024, 768, 3072});
  benchmark->Args({256, 50257, 768}); // a chunk of the head
}

BENCHMARK(product<float, Pass::forward>)->Name("gemm/fp32/forward")->Apply(forward_shapes);
BENCHMARK(product<bf16, Pass::forward>)->Name("gemm/bf16/forward")->Apply(forward_shapes);
BENCHMARK(product<float, Pass::input_gradient>)
    ->Name("gemm/fp32/input_gradient")
    ->Apply(shapes)
    ->Args({1024, 768, 3072});
BENCHMARK(product<float, Pass::weight_gradient>)
    ->Name("gemm/fp32/weight_gradient")
    ->Apply(shapes)
    ->Args({3072, 768, 1024});

} // namespace
