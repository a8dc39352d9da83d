#include "kernels/flat.hpp"

#include "kernels/row_reduce.hpp"

namespace kozero {

namespace {

// Named function objects and no lambdas: what nvcc makes of a lambda for host and device is called through a pointer on
// the host, and does not vectorise there.
template <class To, class From>
struct Convert {
  Vec<To> y;
  Vec<From const> x;
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<k> at) const {
    store(y, at, load(x, at));
  }
};

template <class To, class From>
struct Accumulate {
  Vec<To> y;
  Vec<From const> x;
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<k> at) const {
    store(y, at, map([](float a, float b) { return a + b; }, load(y, at), load(x, at)));
  }
};

template <class T>
struct FindNonFinite {
  std::int64_t* first;
  T const* x;
  std::int64_t offset;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    float const value = static_cast<float>(x[i]);
    bool const finite = value - value == 0.0f;
    if (!finite) Kokkos::atomic_fetch_min(first, offset + i);
  }
};

/// A chunk of element_chunk indices, as one loop of a host's thread.
template <class Body>
struct Chunk {
  Body body;
  std::int64_t n;
  void operator()(std::int64_t chunk) const {
    std::int64_t const begin = chunk * element_chunk;
    std::int64_t const end = n - begin < element_chunk ? n : begin + element_chunk;
    host_simd([body = body, begin, end] {
      KOZERO_INDEPENDENT
      for (std::int64_t i = begin; i < end; ++i) body(Place<1>{i});
    });
  }
};

/// body(Place) for the elements 0 … n-1 of its y and x. On a host as long vectors.
template <class AnyLane, template <class, class> class Body, class To, class From>
void for_each_pair(AnyLane const& lane, char const* label, std::int64_t n, Body<To, From> const& body) {
  if constexpr (runs_on_host<AnyLane>) {
    launch(lane, label, Range{(n + element_chunk - 1) / element_chunk}, Chunk<Body<To, From>>{body, n});
  } else {
    constexpr int k = pack_size < To >> pack_size<From> ? pack_size<To> : pack_size<From>;
    launch_packs<k>(lane, label, n, packs_of<k>(body.y, body.x), body);
  }
}

} // namespace

template <class AnyLane, class To, class From>
void convert(AnyLane const& lane, To* y, From const* x, std::int64_t n) {
  for_each_pair(lane, "kozero::convert", n, Convert<To, From>{{y, n}, {x, n}});
}

template <class AnyLane, class To, class From>
void accumulate(AnyLane const& lane, To* y, From const* x, std::int64_t n) {
  for_each_pair(lane, "kozero::accumulate", n, Accumulate<To, From>{{y, n}, {x, n}});
}

template <class AnyLane, class T>
void find_non_finite(AnyLane const& lane, std::int64_t* first, T const* x, std::int64_t n, std::int64_t offset) {
  launch(lane, "kozero::find_non_finite", Range{n}, FindNonFinite<T>{first, x, offset});
}

#define KOZERO_INSTANTIATE_FLAT_PAIR(AnyLane, To, From)                                                                \
  template void convert(AnyLane const&, To*, From const*, std::int64_t);                                               \
  template void accumulate(AnyLane const&, To*, From const*, std::int64_t);
#define KOZERO_INSTANTIATE_FLAT(AnyLane, T)                                                                            \
  KOZERO_INSTANTIATE_FLAT_PAIR(AnyLane, T, T)                                                                          \
  template void find_non_finite(AnyLane const&, std::int64_t*, T const*, std::int64_t, std::int64_t);
#define KOZERO_INSTANTIATE_FLAT_HALF(AnyLane, T)                                                                       \
  KOZERO_INSTANTIATE_FLAT(AnyLane, T)                                                                                  \
  KOZERO_INSTANTIATE_FLAT_PAIR(AnyLane, T, float)                                                                      \
  KOZERO_INSTANTIATE_FLAT_PAIR(AnyLane, float, T)
#define KOZERO_INSTANTIATE_FLAT_ON(AnyLane)                                                                            \
  KOZERO_INSTANTIATE_FLAT(AnyLane, float)                                                                              \
  KOZERO_INSTANTIATE_FLAT_HALF(AnyLane, bf16)                                                                          \
  KOZERO_INSTANTIATE_FLAT_HALF(AnyLane, fp16)

KOZERO_INSTANTIATE_FLAT_ON(HostLane)
KOZERO_INSTANTIATE_FLAT_ON(Lane)

} // namespace kozero
