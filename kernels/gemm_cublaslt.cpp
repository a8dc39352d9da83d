// gemm on CUDA: one call of cuBLASLt, which takes bf16 and fp16 as they are and adds into fp32 by itself.
#include "kernels/cublaslt.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_start.hpp"
#include "kernels/gemm_workspace.hpp"

#include <type_traits>

namespace kozero {

namespace {

template <class T>
constexpr cublaslt::Type type_of() {
  return std::is_same_v<T, float>  ? cublaslt::Type::fp32
         : std::is_same_v<T, bf16> ? cublaslt::Type::bf16
                                   : cublaslt::Type::fp16;
}

// None where a stand-in for the library computes on the host.
template <class Exec>
CUstream_st* stream_of(Exec const& exec) {
  if constexpr (requires { exec.cuda_stream(); }) {
    return exec.cuda_stream();
  } else {
    return nullptr;
  }
}

} // namespace

template <class T, class R>
void gemm(Lane const& lane, std::int64_t m, std::int64_t n, std::int64_t k, R* c, std::int64_t c_stride, Operand<T> a,
          Operand<T> b, T const* bias, Into into) {
  if (m == 0 || n == 0) return;
  GemmWorkspace const& workspace = GemmWorkspace::of(lane);
  // The library adds a bias of the result's type, to what it overwrites; not to vectors, which it may refuse.
  bool const library_adds_bias = bias && m > 1 && n > 1 && k > 1 && into == Into::overwrite && std::is_same_v<T, R>;
  bool const started = (bias && !library_adds_bias) || k == 0;
  if (started) start_gemm_sum(lane, m, n, c, c_stride, c, c_stride, bias, into);
  if (k == 0) return;

  using Read = typename Operand<T>::Read;
  void const* const added = library_adds_bias ? bias : nullptr;
  cublaslt::Key const key{.m = m,
                          .n = n,
                          .k = k,
                          .a_stride = a.stride,
                          .b_stride = b.stride,
                          .c_stride = c_stride,
                          .a_transposed = a.read == Read::transposed,
                          .b_transposed = b.read == Read::transposed,
                          .accumulates = started || into == Into::accumulate,
                          .has_bias = library_adds_bias,
                          .operands = type_of<T>(),
                          .result = type_of<R>(),
                          .fp32 = workspace.fp32(),
                          .a_alignment = cublaslt::alignment_of(a.data),
                          .b_alignment = cublaslt::alignment_of(b.data),
                          .c_alignment = cublaslt::alignment_of(c),
                          .bias_alignment = added ? cublaslt::alignment_of(added) : 0,
                          .workspace_bytes = static_cast<std::uint64_t>(workspace.bytes())};
  cublaslt::Addresses const addresses{a.data, b.data, c, added};
  void* const memory = workspace.data();
  enqueue(lane, "kozero::gemm",
          {touched(a, m, k), touched(b, k, n), {added, added ? n * static_cast<std::int64_t>(sizeof(T)) : 0}},
          {touched(c, c_stride, m, n), {memory, workspace.bytes()}},
          [=](Lane::Exec const& exec) { cublaslt::matmul(key).run(addresses, memory, stream_of(exec)); });
}

template void gemm(Lane const&, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t, Operand<float>,
                   Operand<float>, float const*, Into);
template void gemm(Lane const&, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t, Operand<bf16>,
                   Operand<bf16>, bf16 const*, Into);
template void gemm(Lane const&, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t, Operand<fp16>,
                   Operand<fp16>, fp16 const*, Into);
template void gemm(Lane const&, std::int64_t, std::int64_t, std::int64_t, bf16*, std::int64_t, Operand<bf16>,
                   Operand<bf16>, bf16 const*, Into);
template void gemm(Lane const&, std::int64_t, std::int64_t, std::int64_t, fp16*, std::int64_t, Operand<fp16>,
                   Operand<fp16>, fp16 const*, Into);

// 32 MiB is what NVIDIA recommends for Hopper (4 elsewhere). The size is part of what chooses an algorithm, so it is
// the same everywhere, also where a plan has no device to ask.
GemmTraits gemm_traits() { return {.workspace_bytes = std::int64_t{32} << 20, .has_tf32 = true}; }

std::string gemm_backend() { return cublaslt::description(); }

} // namespace kozero
