#pragma once
#include "core/half.hpp"
#include "core/launch.hpp"
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

/// A matrix as an operand, as it stands or to be read as its transpose.
template <class T>
Operand<T> plain(Mat<T const> const& matrix) {
  return {matrix.data(), matrix.stride(), Operand<T>::Read::plain};
}
template <class T>
Operand<T> transposed(Mat<T const> const& matrix) {
  return {matrix.data(), matrix.stride(), Operand<T>::Read::transposed};
}

/// The memory of `rows` rows of a matrix, and of an operand that is read as rows × columns.
template <class T>
Touched touched(T const* data, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  std::int64_t const elements = rows == 0 || columns == 0 ? 0 : (rows - 1) * stride + columns;
  return {data, elements * static_cast<std::int64_t>(sizeof(T))};
}
template <class T>
Touched touched(Operand<T> const& operand, std::int64_t rows, std::int64_t columns) {
  bool const turned = operand.read == Operand<T>::Read::transposed;
  return turned ? touched(operand.data, operand.stride, columns, rows)
                : touched(operand.data, operand.stride, rows, columns);
}

/// c[m,n] = a[m,k] · b[k,n] + bias[n] (+ c), summed in fp32. T is float, bf16 or fp16; R, the type of c, is T or float.
/// `bias` may be null. Sizes of zero are legal; k = 0 gives the bias. c overlaps neither a nor b. The bits do not
/// depend on the number of threads.
///
/// This is the one place that calls a BLAS: oneDNN on hosts, cuBLASLt on CUDA, KokkosBlas elsewhere (and where there is
/// no oneDNN). The lane must have a GemmWorkspace, which holds what cuBLASLt works in. The others keep memory of their
/// own, which no ledger counts: about 2 MiB a thread, or 48 MiB in all with KokkosBlas.
template <class T, class R>
void gemm(Lane const& lane, std::int64_t m, std::int64_t n, std::int64_t k, R* c, std::int64_t c_stride, Operand<T> a,
          Operand<T> b, T const* bias, Into into);

/// The library behind gemm, with its version, instruction set and way with bf16:
/// "oneDNN 2.6.3, AVX-512 BF16, bf16 as fp32"; "cuBLASLt 13.1.0".
std::string gemm_backend();

} // namespace kozero
