#pragma once
// Matrices in device memory for tests of kernels, and the doubles that oracles work with.

#include "core/half.hpp"
#include "core/rng.hpp"
#include "core/views.hpp"
#include "support/device_array.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace kozero::test {

/// Row-major, dense.
using Numbers = std::vector<double>;

/// Normally distributed; `stream` tells one set from another.
inline Numbers normal_numbers(std::int64_t count, int stream, double deviation = 1) {
  Numbers numbers(static_cast<std::size_t>(count));
  RngKey const key{7, RngPurpose::initialise, 0, static_cast<std::uint32_t>(stream)};
  for (std::int64_t i = 0; i < count; ++i) numbers[i] = deviation * random_normal(key, i);
  return numbers;
}

/// |got - want| / |want| in the L2 norm; |got| where want is zero.
inline double relative_error(Numbers const& got, Numbers const& want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double wrong = 0;
  double all = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    wrong += (got[i] - want[i]) * (got[i] - want[i]);
    all += want[i] * want[i];
  }
  return std::sqrt(all > 0 ? wrong / all : wrong);
}

/// A matrix whose rows may be further apart than they are long. All of it starts as NaN, so that a kernel that reads
/// what it should not shows it.
template <class T>
class Matrix {
public:
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t padding = 0)
      : rows_(rows), columns_(columns), stride_(columns + padding), all_(nothing(rows * stride_)) {}
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t padding, Numbers const& numbers)
      : Matrix(rows, columns, padding) {
    set(numbers);
  }

  Mat<T> view() const { return Mat<T>(all_.data(), rows_, columns_, stride_); }
  operator Mat<T>() const { return view(); }
  operator Mat<T const>() const { return view(); }

  void set(Numbers const& numbers) {
    std::vector<T> all = all_.get();
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < columns_; ++j) {
        all[i * stride_ + j] = static_cast<T>(static_cast<float>(numbers[i * columns_ + j]));
      }
    }
    all_.set(all);
  }

  /// What it holds, as rounded to T.
  Numbers get() const {
    std::vector<T> const all = all_.get();
    Numbers numbers;
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < columns_; ++j) numbers.push_back(static_cast<float>(all[i * stride_ + j]));
    }
    return numbers;
  }

  /// Whether nobody has written beyond the ends of the rows.
  bool padding_is_untouched() const {
    std::vector<T> const all = all_.get();
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = columns_; j < stride_; ++j) {
        if (!std::isnan(static_cast<float>(all[i * stride_ + j]))) return false;
      }
    }
    return true;
  }

private:
  static std::vector<T> nothing(std::int64_t size) {
    return std::vector<T>(static_cast<std::size_t>(size), static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
  }

  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t stride_;
  DeviceArray<T> all_;
};

/// A vector that a kernel takes.
template <class T>
class Vector {
public:
  explicit Vector(std::int64_t size) : matrix_(1, size) {}
  explicit Vector(Numbers const& numbers) : matrix_(1, static_cast<std::int64_t>(numbers.size()), 0, numbers) {}

  T* data() const { return matrix_.view().data(); }
  Vec<T> view() const { return matrix_.view().flat(); }
  operator Vec<T>() const { return view(); }
  operator Vec<T const>() const { return view(); }
  Numbers get() const { return matrix_.get(); }

private:
  Matrix<T> matrix_;
};

/// c [m,n] = a [m,k] · b [k,n] in doubles.
inline Numbers product(Numbers const& a, Numbers const& b, std::int64_t m, std::int64_t n, std::int64_t k) {
  Numbers c(static_cast<std::size_t>(m * n), 0.0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

/// The transpose of a [m,n].
inline Numbers transpose(Numbers const& a, std::int64_t m, std::int64_t n) {
  Numbers t(a.size());
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) t[j * m + i] = a[i * n + j];
  }
  return t;
}

/// How far a result of type T may be from the truth, in relative_error.
template <class T>
inline constexpr double tolerance = std::is_same_v<T, float>  ? 1e-5
                                    : std::is_same_v<T, bf16> ? 2e-2
                                                              : 2e-3;

} // namespace kozero::test
