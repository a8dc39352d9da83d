#pragma once
// The two products of oneDNN (2.6 to 3.x) that gemm_onednn.cpp is made of. Both run on the calling thread alone.

#include "kernels/gemm.hpp"

#include <memory>
#include <string>

namespace kozero::onednn {

/// sum [m,n] (+)= a [m,k] · b [k,n], rows of sum `stride` elements apart.
struct Shape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t stride = 0;
  Into into = Into::overwrite;
};

/// In fp32. Throws where oneDNN refuses (out of memory).
void sgemm(Shape const& shape, float* sum, Operand<float> const& a, Operand<float> const& b);

/// How bf16 operands are multiplied. Processors with matrix units (AMX) take them as they are, through oneDNN's
/// matmul. On others fp32 is as fast or faster, exact in its products, and there on every processor: measured on a
/// Xeon with AVX-512 BF16 but no AMX, 87 GFLOP/s a core as they are, 140 as fp32 with the conversions counted.
enum class Bf16Way { native, as_fp32 };

/// The way on this processor. KOZERO_BF16_GEMM=native or fp32 in the environment chooses another.
Bf16Way bf16_way();

/// A matmul of bf16 operands into fp32, compiled by oneDNN for one shape.
class Bf16Matmul {
public:
  struct Key {
    Shape shape;
    std::int64_t a_stride = 0, b_stride = 0;
    bool a_transposed = false, b_transposed = false;
  };
  explicit Bf16Matmul(Key const& key);
  ~Bf16Matmul();

  /// Length that `scratch` must have, aligned to 64 bytes.
  std::int64_t scratch_floats() const;
  /// Any thread; each with its own scratch.
  void run(float* sum, bf16 const* a, bf16 const* b, float* scratch) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// From a cache, as compiling takes longer than most products. Only where no other thread is in here may it compile:
/// callers ask for all that they need before they go parallel. A reference holds until the next call of forget_old().
Bf16Matmul const& bf16_matmul(Bf16Matmul::Key const& key);

/// Empties the cache if it has grown large. No reference to a Bf16Matmul may be in use.
void forget_old();

/// "oneDNN 2.6.3, AVX-512 BF16, bf16 as fp32"
std::string description();

} // namespace kozero::onednn
