#pragma once
// A stand-in for cuBLASLt, for machines without CUDA. It holds each call to the rules of NVIDIA's documentation, and
// computes from the descriptors alone, on the host: a wrong distance or transposition gives wrong numbers.
//
// As the library may, it cuts k in parts, as many as the alignments that it was told of allow; so bits depend on them.
// Where its caller lets it, the parts' sums are rounded to the result's type.

#include "cublasLt.h"

#include <array>
#include <compare>
#include <cstdint>
#include <set>
#include <string>

namespace kozero::test::cublaslt_stand_in {

/// All that decides on an algorithm, in cuBLASLt's order and words: d [rows,columns] by columns.
struct Product {
  std::uint64_t rows = 0, columns = 0, inner = 0;
  std::int64_t lda = 0, ldb = 0, ldd = 0;
  bool a_transposed = false, b_transposed = false, has_bias = false;
  cudaDataType_t operands = CUDA_R_32F, result = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::array<std::uint32_t, 4> alignments = {}; // of a, b, c and d
  std::uint32_t bias_alignment = 0;
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = 0;
  friend auto operator<=>(Product const&, Product const&) = default;
};

enum class Work { computes, checks };

/// Whether products are computed, or calls held to the rules alone.
void set_work(Work work);
/// Every product that was run since forget_products(), once each.
std::set<Product> const& products();
void forget_products();
/// How often the heuristic was asked so far, and descriptors that have not been destroyed.
std::int64_t questions();
std::int64_t descriptors();
/// The rule that the last refused call broke.
std::string const& refusal();

} // namespace kozero::test::cublaslt_stand_in
