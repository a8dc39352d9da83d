#pragma once
// Sums in double whose bits depend on the values and their number alone: chunks of 4096 elements, then a binary tree
// over the chunks. On an accelerator a chunk is one thread's.

#include "kernels/row_reduce.hpp"

#include <type_traits>
#include <vector>

namespace kozero::detail {

inline constexpr std::int64_t chunk_parts = 32; // partial sums of a chunk: element i goes to part i mod 32

// Σ of `term` over elements begin … begin + count - 1.
template <class Term>
KOKKOS_FORCEINLINE_FUNCTION double chunk_sum(std::int64_t begin, std::int64_t count, Term const& term) {
  double part[chunk_parts] = {};
  std::int64_t i = 0;
  for (; i + chunk_parts <= count; i += chunk_parts) {
    for (std::int64_t j = 0; j < chunk_parts; ++j) part[j] += term(begin + i + j);
  }
  for (std::int64_t j = 0; j < count - i; ++j) part[j] += term(begin + i + j);
  for (std::int64_t step = chunk_parts / 2; step > 0; step /= 2) {
    for (std::int64_t j = 0; j < step; ++j) part[j] += part[j + step];
  }
  return part[0];
}

/// The sum of a chunk of terms 0 … n-1, on an accelerator.
template <class Term>
struct ChunkSum {
  double* sums;
  std::int64_t n;
  Term term;
  KOKKOS_FUNCTION void operator()(std::int64_t chunk) const {
    std::int64_t const begin = chunk * element_chunk;
    sums[chunk] = chunk_sum(begin, n - begin < element_chunk ? n - begin : element_chunk, term);
  }
};

/// Appends the sum of each chunk of terms 0 … n-1. Waits for the lane. `term` is a named function object: what nvcc
/// makes of a lambda for host and device is called through a pointer on the host, and does not vectorise there.
template <class Exec, class Term>
void append_chunk_sums(BasicLane<Exec> const& lane, char const* label, std::int64_t n, Term const& term,
                       std::vector<double>& sums) {
  std::int64_t const chunks = (n + element_chunk - 1) / element_chunk;
  if (chunks == 0) return;
  using Memory = typename Exec::memory_space;
  Kokkos::View<double*, Kokkos::LayoutRight, Memory> const result(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "kozero::chunk_sums"), static_cast<std::size_t>(chunks));
  double* const out = result.data();
  Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>> const policy(lane.exec(), 0, chunks);
  if constexpr (std::is_same_v<Exec, HostExec>) {
    Kokkos::parallel_for(label, policy, [=](std::int64_t chunk) {
      std::int64_t const begin = chunk * element_chunk;
      std::int64_t const count = n - begin < element_chunk ? n - begin : element_chunk;
      host_simd([=] { out[chunk] = chunk_sum(begin, count, term); });
    });
  } else {
    Kokkos::parallel_for(label, policy, ChunkSum<Term>{out, n, term});
  }
  lane.fence();
  auto const host = Kokkos::create_mirror_view_and_copy(HostMemory(), result);
  sums.insert(sums.end(), host.data(), host.data() + chunks);
}

} // namespace kozero::detail
