#pragma once
// Host loops compiled twice, for the baseline and for AVX-512, and chosen at run time: a build made on one node runs
// on its neighbours and still uses what they have.

#include "core/kokkos.hpp"

namespace kozero {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define KOZERO_TWO_HOST_TARGETS 1

/// Whether the host loops run as compiled for AVX-512. May be set to false (never to true where the processor has
/// none): tests do, to compare the bits.
inline bool& host_uses_avx512() {
  static bool uses = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return uses;
}

namespace detail {

// By value: a closure that nobody else can see lets the compiler keep what it holds in registers. `flatten` inlines all
// that the body calls, so that it is compiled for this function's target; what cannot be inlined keeps the baseline.
template <class Body>
__attribute__((noinline, flatten, target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void
run_with_avx512(Body const body) {
  body();
}

template <class Body>
__attribute__((noinline, flatten)) void run_with_baseline(Body const body) {
  body();
}

} // namespace detail

/// Runs body(), a lambda that captures by value pointers and sizes, with the widest vectors that the processor has.
/// The bits are those of the baseline as long as the body's sums have a fixed shape and its fma are explicit.
template <class Body>
void host_simd(Body const& body) {
  if (host_uses_avx512()) {
    detail::run_with_avx512(body);
  } else {
    detail::run_with_baseline(body);
  }
}

#else

template <class Body>
KOKKOS_FORCEINLINE_FUNCTION void host_simd(Body const& body) {
  body();
}

#endif

// For a host loop whose iterations touch different elements, or the same element at most in place.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define KOZERO_INDEPENDENT _Pragma("GCC ivdep")
#elif defined(__clang__)
#define KOZERO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define KOZERO_INDEPENDENT
#endif

// For a short host loop of constant length inside a loop that is to be vectorised.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define KOZERO_UNROLL(n) _Pragma(KOZERO_STRING(GCC unroll n))
#define KOZERO_STRING(text) #text
#else
#define KOZERO_UNROLL(n)
#endif

} // namespace kozero
