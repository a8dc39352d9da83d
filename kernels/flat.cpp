#include "kernels/flat.hpp"

#include "kernels/row_reduce.hpp"

#include <type_traits>

namespace kozero {

namespace {

// Named function objects and no lambdas: what nvcc makes of a lambda for host and device is called through a pointer on
// the host, and does not vectorise there.
template <class To, class From>
struct Convert {
  To* y;
  From const* x;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    y[i] = static_cast<To>(static_cast<float>(x[i]));
  }
};

template <class To, class From>
struct Accumulate {
  To* y;
  From const* x;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    y[i] = static_cast<To>(static_cast<float>(y[i]) + static_cast<float>(x[i]));
  }
};

/// body(i) for i = 0 … n-1. On a host as long vectors.
template <class Exec, class Body>
void for_each_index(BasicLane<Exec> const& lane, char const* label, std::int64_t n, Body const& body) {
  if constexpr (std::is_same_v<Exec, HostExec>) {
    std::int64_t const chunks = (n + element_chunk - 1) / element_chunk;
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(lane.exec(), 0, chunks),
                         [=](std::int64_t chunk) {
                           std::int64_t const begin = chunk * element_chunk;
                           std::int64_t const end = n - begin < element_chunk ? n : begin + element_chunk;
                           host_simd([=] {
                             KOZERO_INDEPENDENT
                             for (std::int64_t i = begin; i < end; ++i) body(i);
                           });
                         });
  } else {
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(lane.exec(), 0, n), body);
  }
}

} // namespace

template <class Exec, class To, class From>
void convert(BasicLane<Exec> const& lane, To* y, From const* x, std::int64_t n) {
  for_each_index(lane, "kozero::convert", n, Convert<To, From>{y, x});
}

template <class Exec, class To, class From>
void accumulate(BasicLane<Exec> const& lane, To* y, From const* x, std::int64_t n) {
  for_each_index(lane, "kozero::accumulate", n, Accumulate<To, From>{y, x});
}

template <class Exec, class T>
std::int64_t first_non_finite(BasicLane<Exec> const& lane, T const* x, std::int64_t n) {
  std::int64_t first = n;
  Kokkos::parallel_reduce(
      "kozero::first_non_finite", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(lane.exec(), 0, n),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & least) {
        float const value = static_cast<float>(x[i]);
        bool const finite = value - value == 0.0f;
        if (!finite && i < least) least = i;
      },
      Kokkos::Min<std::int64_t>(first));
  return first < n ? first : n;
}

#define KOZERO_INSTANTIATE_FLAT_PAIR(Exec, To, From)                                                                   \
  template void convert(BasicLane<Exec> const&, To*, From const*, std::int64_t);                                       \
  template void accumulate(BasicLane<Exec> const&, To*, From const*, std::int64_t);
#define KOZERO_INSTANTIATE_FLAT(Exec, T)                                                                               \
  KOZERO_INSTANTIATE_FLAT_PAIR(Exec, T, T)                                                                             \
  template std::int64_t first_non_finite(BasicLane<Exec> const&, T const*, std::int64_t);
#define KOZERO_INSTANTIATE_FLAT_HALF(Exec, T)                                                                          \
  KOZERO_INSTANTIATE_FLAT(Exec, T)                                                                                     \
  KOZERO_INSTANTIATE_FLAT_PAIR(Exec, T, float)                                                                         \
  KOZERO_INSTANTIATE_FLAT_PAIR(Exec, float, T)
#define KOZERO_INSTANTIATE_FLAT_ON(Exec)                                                                               \
  KOZERO_INSTANTIATE_FLAT(Exec, float)                                                                                 \
  KOZERO_INSTANTIATE_FLAT_HALF(Exec, bf16)                                                                             \
  KOZERO_INSTANTIATE_FLAT_HALF(Exec, fp16)

KOZERO_INSTANTIATE_FLAT_ON(HostExec)
#if KOZERO_HAS_ACCELERATOR
KOZERO_INSTANTIATE_FLAT_ON(DeviceExec)
#endif

} // namespace kozero
