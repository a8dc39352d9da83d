#pragma once
// What kernels take: vectors and matrices in device memory that somebody else owns, row-major. They can be copied byte
// by byte, so that a kernel which captures them owns nothing and fits in an accelerator's parameters. The comment of
// each function gives its shapes in the letters of kernels/shapes.hpp.

#include "core/kokkos.hpp"
#include "core/memory.hpp"

#if KOZERO_EMULATED
#include "core/emulated/index.hpp"
#endif

#include <cstdint>
#include <type_traits>

namespace kozero {

namespace detail {

/// On the emulated device an Error where index is none of 0 … size-1, which are `what`.
KOKKOS_FORCEINLINE_FUNCTION void require_index([[maybe_unused]] std::int64_t index, [[maybe_unused]] std::int64_t size,
                                               [[maybe_unused]] char const* what) {
#if KOZERO_EMULATED
  if (index < 0 || index >= size) emulated::fail_index(index, size, what);
#endif
}

/// The same for begin … end-1, all of them.
inline void require_part([[maybe_unused]] std::int64_t begin, [[maybe_unused]] std::int64_t end,
                         [[maybe_unused]] std::int64_t size, [[maybe_unused]] char const* what) {
#if KOZERO_EMULATED
  if (begin < 0 || begin > end || end > size) emulated::fail_part(begin, end, size, what);
#endif
}

} // namespace detail

/// x(i), i = 0 … size-1. Outputs: T is deduced from them.
template <class T>
class Vec {
public:
  Vec() = default;
  KOKKOS_FORCEINLINE_FUNCTION Vec(T* data, std::int64_t size) : data_(data), size_(size) {}
  template <class U>
  requires std::is_same_v<U const, T> KOKKOS_FORCEINLINE_FUNCTION Vec(Vec<U> const& other)
      : data_(other.data()), size_(other.size()) {}

  KOKKOS_FORCEINLINE_FUNCTION T& operator()(std::int64_t i) const {
    detail::require_index(i, size_, "elements of a vector");
    return data_[i];
  }
  KOKKOS_FORCEINLINE_FUNCTION T* data() const { return data_; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t size() const { return size_; }
  /// Elements begin … end-1.
  Vec part(std::int64_t begin, std::int64_t end) const {
    detail::require_part(begin, end, size_, "elements of a vector");
    return Vec(data_ + begin, end - begin);
  }

private:
  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

/// x(row, column); rows may be further apart than they are long.
template <class T>
class Mat {
public:
  Mat() = default;
  KOKKOS_FORCEINLINE_FUNCTION Mat(T* data, std::int64_t rows, std::int64_t cols, std::int64_t stride)
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {}
  template <class U>
  requires std::is_same_v<U const, T> KOKKOS_FORCEINLINE_FUNCTION Mat(Mat<U> const& other)
      : data_(other.data()), rows_(other.rows()), cols_(other.cols()), stride_(other.stride()) {}

  KOKKOS_FORCEINLINE_FUNCTION T& operator()(std::int64_t row, std::int64_t column) const {
    detail::require_index(row, rows_, "rows of a matrix");
    detail::require_index(column, cols_, "columns of a matrix");
    return data_[row * stride_ + column];
  }
  KOKKOS_FORCEINLINE_FUNCTION T* data() const { return data_; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t rows() const { return rows_; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t cols() const { return cols_; }
  /// Elements from one row to the next.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t stride() const { return stride_; }
  /// Rows begin … end-1.
  Mat part(std::int64_t begin, std::int64_t end) const {
    detail::require_part(begin, end, rows_, "rows of a matrix");
    return Mat(data_ + begin * stride_, end - begin, cols_, stride_);
  }
  /// All elements, of rows that follow each other without gaps.
  Vec<T> flat() const { return Vec<T>(data_, rows_ * cols_); }

private:
  T* data_ = nullptr;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t stride_ = 0;
};

/// Inputs: a Vec<T> or Vec<T const> both fit, and T is not deduced from them.
template <class T>
using ConstVec = std::type_identity_t<Vec<T const>>;
template <class T>
using ConstMat = std::type_identity_t<Mat<T const>>;

/// Views of plain device memory.
template <class T>
Vec<T> make_vec(T* data, std::int64_t size) {
  return Vec<T>(data, size);
}
template <class T>
Mat<T> make_mat(T* data, std::int64_t rows, std::int64_t cols) {
  return Mat<T>(data, rows, cols, cols);
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t rows(Vec<T> const& vector) {
  return vector.size();
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t rows(Mat<T> const& matrix) {
  return matrix.rows();
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t cols(Mat<T> const& matrix) {
  return matrix.cols();
}

template <class T>
Pointer<T, DeviceMemory> on_device(Vec<T> const& vector) {
  return {vector.data()};
}

} // namespace kozero
