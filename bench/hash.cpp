// The hash of a state, in pieces as they come, beside reading the same memory by one thread.
#include "core/hash.hpp"
#include "bench/pair.hpp"

#include <cstdint>
#include <numeric>

namespace {

using namespace kozero;
using namespace kozero::bench;

void hash(benchmark::State& state) {
  std::size_t const bytes = static_cast<std::size_t>(state.range(0));
  std::size_t const piece = static_cast<std::size_t>(state.range(1));
  std::vector<std::uint64_t> const words(bytes / sizeof(std::uint64_t), 0x9e3779b97f4a7c15u);
  auto const* const data = reinterpret_cast<unsigned char const*>(words.data());
  measure_pair(
      state,
      [&] {
        Hash128 hash;
        for (std::size_t at = 0; at < bytes; at += piece) hash.update(data + at, piece);
        benchmark::DoNotOptimize(hash.digest());
      },
      [&] { benchmark::DoNotOptimize(std::accumulate(words.begin(), words.end(), std::uint64_t{0})); });
}

BENCHMARK(hash)
    ->Name("hash/xxh3")
    ->ArgNames({"bytes", "piece"})
    ->Args({1 << 20, 1 << 12})
    ->Args({1 << 20, 1 << 18})
    ->Args({1 << 26, 1 << 18})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

} // namespace
