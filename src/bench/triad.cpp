#include "bench/triad.hpp"

#include "core/host_simd.hpp"
#include "core/launch.hpp"

#include <algorithm>

namespace kozero {

namespace {

constexpr std::int64_t tile = 16384; // elements that a thread takes at a time, as AdamW's

/// Elements [begin, end), by the loop that the compiler makes of it.
void run_range(float* a, float* b, float* c, std::int64_t begin, std::int64_t end, float s) {
  host_simd([=] {
    KOZERO_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) {
      float const x = a[i];
      float const y = b[i];
      float const z = c[i];
      a[i] = x + s * y; // no fma: it is a call where the processor has none, and then this is none of memory
      b[i] = y + s * z;
      c[i] = z + s * x;
    }
  });
}

/// By threads that take an element each.
[[maybe_unused]] void run_by_elements(Lane const& lane, float* a, float* b, float* c, std::int64_t count) {
  float const s = 0;
  launch(
      lane, "kozero::bench::triad", Range{count}, KOKKOS_LAMBDA(std::int64_t i) {
        float const x = a[i];
        float const y = b[i];
        float const z = c[i];
        a[i] = x + s * y;
        b[i] = y + s * z;
        c[i] = z + s * x;
      });
}

} // namespace

void run_triad(HostLane const& lane, float* a, float* b, float* c, std::int64_t count) {
  float const zero = 0;
  launch(lane, "kozero::bench::triad", Range{(count + tile - 1) / tile},
         [=](std::int64_t index) { run_range(a, b, c, index * tile, std::min(count, (index + 1) * tile), zero); });
}

void run_triad([[maybe_unused]] Lane const& lane, float* a, float* b, float* c, std::int64_t count) {
  if constexpr (runs_on_host<Lane>) {
    run_triad(HostLane(), a, b, c, count);
  } else {
    run_by_elements(lane, a, b, c, count);
  }
}

void run_triad_by_this_thread(float* a, float* b, float* c, std::int64_t count) {
  float const zero = 0;
  for (std::int64_t begin = 0; begin < count; begin += tile) {
    run_range(a, b, c, begin, std::min(count, begin + tile), zero);
  }
}

} // namespace kozero
