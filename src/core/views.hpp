#pragma once
// Names for the Kokkos Views that kernels take: row-major, not owning, in device memory. The comment of each function
// gives its shapes in the letters of kernels/shapes.hpp.

#include "core/kokkos.hpp"

#include <cstdint>
#include <type_traits>

namespace kozero {

using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;

/// Outputs: T is deduced from them.
template <class T>
using Vec = Kokkos::View<T*, Kokkos::LayoutRight, DeviceMemory, Unmanaged>;
template <class T>
using Mat = Kokkos::View<T**, Kokkos::LayoutRight, DeviceMemory, Unmanaged>;

/// Inputs: a Vec<T> or Vec<T const> both fit, and T is not deduced from them.
template <class T>
using ConstVec = std::type_identity_t<Vec<T const>>;
template <class T>
using ConstMat = std::type_identity_t<Mat<T const>>;

/// Views of plain memory.
template <class T>
Vec<T> make_vec(T* data, std::int64_t size) {
  return Vec<T>(data, static_cast<std::size_t>(size));
}
template <class T>
Mat<T> make_mat(T* data, std::int64_t rows, std::int64_t cols) {
  return Mat<T>(data, static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
}

/// Extents as the signed 64-bit integers that all loops use.
template <class View>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t rows(View const& view) {
  return static_cast<std::int64_t>(view.extent(0));
}
template <class View>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t cols(View const& view) {
  return static_cast<std::int64_t>(view.extent(1));
}

} // namespace kozero
