#include "bench/benchmarks.hpp"

#include "core/device_name.hpp"
#include "core/error.hpp"
#include "core/kokkos.hpp"

namespace kozero {

std::vector<BenchFact> bench_facts(Ranks& ranks) {
  return {{"device", "device", bench_words(device_name())},
          {"ranks", "ranks", bench_count(ranks.size())},
          {"threads", "threads", bench_count(HostExec().concurrency())}};
}

BenchValue bench_share(double share) { return {.value = share, .text = fmt::format("{:.1f} %", 100 * share)}; }

} // namespace kozero
