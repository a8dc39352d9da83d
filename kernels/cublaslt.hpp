#pragma once
// The product of cuBLASLt (12 and 13) that gemm_cublaslt.cpp is made of. It reads and writes by columns, so our
// row-major c = a · b is its cᵀ = bᵀ · aᵀ: the same bytes, operands changed over.

#include "kernels/gemm_workspace.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

struct CUstream_st; // what a cudaStream_t points to

namespace kozero::cublaslt {

enum class Type { fp32, bf16, fp16 };

/// What decides how a product is made: cuBLASLt is asked once for each. c [m,n] (+)= a [m,k] · b [k,n] (+ bias [n]),
/// operands of one type, summed in fp32.
struct Key {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0; // elements from one row to the next, as they lie in memory
  bool a_transposed = false, b_transposed = false;       // read as the transpose of what lies there
  bool accumulates = false, has_bias = false;
  Type operands = Type::fp32, result = Type::fp32;
  Fp32Products fp32 = Fp32Products::exact;
  std::uint32_t a_alignment = 0, b_alignment = 0, c_alignment = 0, bias_alignment = 0; // alignment_of the addresses
  std::uint64_t workspace_bytes = 0;
  auto all() const {
    return std::tie(m, n, k, a_stride, b_stride, c_stride, a_transposed, b_transposed, accumulates, has_bias, operands,
                    result, fp32, a_alignment, b_alignment, c_alignment, bias_alignment, workspace_bytes);
  }
  friend bool operator==(Key const& a, Key const& b) { return a.all() == b.all(); }
  friend bool operator<(Key const& a, Key const& b) { return a.all() < b.all(); }
};

/// The largest power of two up to 16 bytes, the most that any kernel asks for, that an address is a multiple of.
std::uint32_t alignment_of(void const* address);

struct Addresses {
  void const* a = nullptr;
  void const* b = nullptr;
  void* c = nullptr;
  void const* bias = nullptr;
};

/// Descriptors and algorithm of a product: the first that cuBLASLt's heuristic has for it within the workspace. None is
/// ever timed, as two ranks, or two runs, could choose differently.
class Matmul {
public:
  /// Error, with the product in words, where cuBLASLt has none.
  explicit Matmul(Key const& key);
  ~Matmul();

  /// Gives it to a stream, which has `workspace`, of the key's size, to itself.
  void run(Addresses const& addresses, void* workspace, CUstream_st* stream) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// From a cache. A reference holds until the next call.
Matmul const& matmul(Key const& key);

/// "c [64,128] in bf16 = a [64,32] · bᵀ [32,128] + bias, operands in bf16, rows 128, 32 and 32 elements apart,
/// addresses multiples of 16, 16 and 16 bytes"
std::string to_text(Key const& key);

/// "cuBLASLt 13.1.0"
std::string description();

} // namespace kozero::cublaslt
