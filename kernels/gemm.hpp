#pragma once
#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

#include <cstdint>
#include <string>

namespace kozero {

/// What happens to the result's old content.
enum class Into { overwrite, accumulate };

/// A row-major matrix that may be read as its transpose; rows may be `stride` > columns elements apart.
template <class T>
struct Operand {
  T const* data = nullptr;
  std::int64_t stride = 0;
  enum class Read { plain, transposed } read = Read::plain;
};

/// Elements from one row to the next.
template <class View>
std::int64_t row_stride(View const& matrix) {
  return matrix.extent(0) > 1 ? static_cast<std::int64_t>(matrix.stride(0)) : cols(matrix);
}

/// A matrix as an operand, as it stands or to be read as its transpose.
template <class T>
Operand<T> plain(Mat<T const> const& matrix) {
  return {matrix.data(), row_stride(matrix), Operand<T>::Read::plain};
}
template <class T>
Operand<T> transposed(Mat<T const> const& matrix) {
  return {matrix.data(), row_stride(matrix), Operand<T>::Read::transposed};
}

/// c[m,n] = a[m,k] · b[k,n] + bias[n] (+ c), summed in fp32. T is float, bf16 or fp16; R, the type of c, is T or float.
/// `bias` may be null. Sizes of zero are legal; k = 0 gives the bias. c overlaps neither a nor b. The bits do not
/// depend on the number of threads.
///
/// This is the one place that calls a BLAS: oneDNN on hosts, KokkosBlas elsewhere (and where there is no oneDNN). It
/// keeps memory of its own, which no ledger counts: about 2 MiB a thread, or 48 MiB in all with KokkosBlas.
template <class T, class R>
void gemm(Lane const& lane, std::int64_t m, std::int64_t n, std::int64_t k, R* c, std::int64_t c_stride, Operand<T> a,
          Operand<T> b, T const* bias, Into into);

/// The library behind gemm, with its version, instruction set and way with bf16:
/// "oneDNN 2.6.3, AVX-512 BF16, bf16 as fp32".
std::string gemm_backend();

} // namespace kozero
