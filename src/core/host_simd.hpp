#pragma once
// Host loops compiled for several instruction sets, of which one is chosen at run time: a build made on one node runs
// on all its neighbours, and on each with the widest vectors that it has.

#include "core/kokkos.hpp"

#include <cstdint>

namespace kozero {

/// What a host loop is compiled for; each includes those before it. Architectures other than x86-64 have one target,
/// the baseline of their compiler flags.
enum class HostTarget { baseline, avx2, avx512 };

/// "x86-64", "AVX2", "AVX-512"; where there is but one target, the architecture.
char const* name_of(HostTarget target);

/// The widest target that this processor, and its operating system, can run.
HostTarget widest_host_target();

/// What host loops run as. It starts as the widest.
HostTarget host_target();

/// For tests, which compare the bits of all targets. No wider one than the processor has; while no loop runs.
void set_host_target(HostTarget target);

/// To what KOZERO_HOST_TARGET says, if it is set: x86-64, avx2 or avx512. So a test runs as on another processor.
void set_host_target_from_environment();

#if defined(__x86_64__) && defined(__GNUC__)
#define KOZERO_HOST_TARGETS 1

namespace detail {

extern HostTarget host_target; // zero before its initialisation, which is the baseline

#define KOZERO_AVX2 "avx2,fma,f16c,bmi,bmi2"
#if defined(__clang__)
#define KOZERO_AVX512 KOZERO_AVX2 ",avx512f,avx512bw,avx512dq,avx512vl"
#else
#define KOZERO_AVX512 KOZERO_AVX2 ",avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
#endif

// By value: a closure that nobody else can see lets the compiler keep what it holds in registers. `flatten` inlines all
// that the body calls, so that it is compiled for this function's target; what cannot be inlined keeps the baseline.
template <class Body>
__attribute__((noinline, flatten, target(KOZERO_AVX512))) void run_with_avx512(Body const body) {
  body();
}

template <class Body>
__attribute__((noinline, flatten, target(KOZERO_AVX2))) void run_with_avx2(Body const body) {
  body();
}

template <class Body>
__attribute__((noinline, flatten)) void run_with_baseline(Body const body) {
  body();
}

} // namespace detail

/// Runs body(), a lambda that captures by value pointers and sizes, as compiled for host_target().
/// The bits are those of the baseline as long as the body's sums have a fixed shape and its fma are explicit.
template <class Body>
void host_simd(Body const& body) {
  switch (detail::host_target) {
  case HostTarget::avx512: return detail::run_with_avx512(body);
  case HostTarget::avx2: return detail::run_with_avx2(body);
  case HostTarget::baseline: return detail::run_with_baseline(body);
  }
}

#else

template <class Body>
void host_simd(Body const& body) {
  body();
}

#endif

/// Asks the host for the cache lines of array[index] to array[index + count - 1], which need not exist: processors
/// ignore what they cannot fetch.
template <std::int64_t count, class T>
inline void prefetch(T const* array, std::int64_t index) {
  constexpr std::int64_t line = 64;
  std::uintptr_t const first = reinterpret_cast<std::uintptr_t>(array) + static_cast<std::uintptr_t>(index) * sizeof(T);
  for (std::uintptr_t offset = 0; offset < count * sizeof(T); offset += line) {
    __builtin_prefetch(reinterpret_cast<void const*>(first + offset));
  }
}

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
