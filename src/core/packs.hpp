#pragma once
// Packs: neighbours in memory that a thread of an accelerator loads and stores at once, 16 bytes where it can be. What
// a kernel does with them is written once, for any number of them; a host's loops take them one by one and vectorise by
// themselves.
//
//     template <class T>
//     struct Add {
//       Vec<T> y;
//       Vec<T const> a, b;
//       template <int k>
//       KOKKOS_FORCEINLINE_FUNCTION void operator()(Place<k> at) const {
//         store(y, at, map([](float a, float b) { return a + b; }, load(a, at), load(b, at)));
//       }
//     };
//     launch_packs<pack_size<T>>(lane, "kozero::add", n, packs_of<pack_size<T>>(y, a, b), Add<T>{y, a, b});

#include "core/launch.hpp"
#include "core/views.hpp"

#include <cstddef>
#include <cstdint>

namespace kozero {

/// Numbers of type T in 16 bytes.
template <class T>
inline constexpr int pack_size = 16 / static_cast<int>(sizeof(T));

/// Elements begin … begin + k - 1 of a vector or a row.
template <int k>
struct Place {
  std::int64_t begin = 0;
};

/// What k neighbours hold, in fp32.
template <int k>
struct Floats {
  float at[k];
};

namespace detail {

/// k elements of T, or as many of them as are moved at once.
template <class T, int k>
struct alignas(k * sizeof(T)) Piece {
  T at[k];
};

/// How many of k elements are moved at once: 16 bytes at most.
template <class T, int k>
inline constexpr int piece_size = k < pack_size<T> ? k : pack_size<T>;

template <int k, class T>
KOKKOS_FORCEINLINE_FUNCTION Floats<k> load(T const* from) {
  Floats<k> result;
  if constexpr (k == 1) {
    result.at[0] = static_cast<float>(*from);
  } else {
    constexpr int n = piece_size<T, k>;
    for (int i = 0; i < k; i += n) {
      Piece<T, n> const piece = *reinterpret_cast<Piece<T, n> const*>(from + i);
      for (int j = 0; j < n; ++j) result.at[i + j] = static_cast<float>(piece.at[j]);
    }
  }
  return result;
}

template <int k, class T>
KOKKOS_FORCEINLINE_FUNCTION void store(T* to, Floats<k> const& values) {
  if constexpr (k == 1) {
    *to = static_cast<T>(values.at[0]);
  } else {
    constexpr int n = piece_size<T, k>;
    for (int i = 0; i < k; i += n) {
      Piece<T, n> piece;
      for (int j = 0; j < n; ++j) piece.at[j] = static_cast<T>(values.at[i + j]);
      *reinterpret_cast<Piece<T, n>*>(to + i) = piece;
    }
  }
}

// By way of the last element, whose index is the one to be checked.
template <int k, class T>
KOKKOS_FORCEINLINE_FUNCTION T* address(Vec<T> const& x, Place<k> at) {
  return &x(at.begin + (k - 1)) - (k - 1);
}
template <int k, class T>
KOKKOS_FORCEINLINE_FUNCTION T* address(Mat<T> const& x, std::int64_t row, Place<k> at) {
  return &x(row, at.begin + (k - 1)) - (k - 1);
}

template <int k, class T>
bool holds_packs(T const* data, std::int64_t stride) {
  constexpr int n = piece_size<T, k>;
  return reinterpret_cast<std::uintptr_t>(data) % (n * sizeof(T)) == 0 && stride % n == 0;
}
template <int k, class T>
bool holds_packs(Vec<T> const& x) {
  return holds_packs<k>(x.data(), 0);
}
template <int k, class T>
bool holds_packs(Mat<T> const& x) {
  return holds_packs<k>(x.data(), x.stride());
}

} // namespace detail

template <int k, class T>
KOKKOS_FORCEINLINE_FUNCTION Floats<k> load(Vec<T> const& x, Place<k> at) {
  return detail::load<k>(detail::address(x, at));
}
template <int k, class T>
KOKKOS_FORCEINLINE_FUNCTION Floats<k> load(Mat<T> const& x, std::int64_t row, Place<k> at) {
  return detail::load<k>(detail::address(x, row, at));
}

/// Rounded to T.
template <int k, class T>
KOKKOS_FORCEINLINE_FUNCTION void store(Vec<T> const& x, Place<k> at, Floats<k> const& values) {
  detail::store<k>(detail::address(x, at), values);
}
template <int k, class T>
KOKKOS_FORCEINLINE_FUNCTION void store(Mat<T> const& x, std::int64_t row, Place<k> at, Floats<k> const& values) {
  detail::store<k>(detail::address(x, row, at), values);
}

/// function(a, b, …) of each of k numbers.
template <class Function, int k, class... Rest>
KOKKOS_FORCEINLINE_FUNCTION Floats<k> map(Function const& function, Floats<k> const& first, Rest const&... rest) {
  Floats<k> result;
  if constexpr (k == 1) { // a constant index, or hosts keep the number in memory and do not vectorise
    result.at[0] = function(first.at[0], rest.at[0]...);
  } else {
    for (int j = 0; j < k; ++j) result.at[j] = function(first.at[j], rest.at[j]...);
  }
  return result;
}

/// Whether k elements at multiples of k may be moved as packs, or only one by one: where memory begins elsewhere, or
/// rows do. The results are the same.
enum class Packs { single, whole };

/// Of Vec and Mat that a kernel moves together.
template <int k, class... Arrays>
Packs packs_of(Arrays const&... arrays) {
  return (detail::holds_packs<k>(arrays) && ...) ? Packs::whole : Packs::single;
}

namespace detail {

template <int k, class Body>
struct InPacks {
  Body body;
  std::int64_t whole;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (i < whole) {
      body(Place<k>{i * k});
    } else {
      body(Place<1>{whole * k + (i - whole)});
    }
  }
};

} // namespace detail

/// Runs body(Place<k or 1>) for elements 0 … n-1, by an accelerator's threads.
template <int k, class Body>
void launch_packs(Lane const& lane, char const* label, std::int64_t n, Packs packs, Body const& body) {
  std::int64_t const whole = packs == Packs::whole ? n / k : 0;
  launch(lane, label, Range{whole + (n - whole * k)}, detail::InPacks<k, Body>{body, whole});
}

} // namespace kozero
