#include "kernels/cublaslt.hpp"

#include "core/error.hpp"
#include "core/kokkos.hpp"

#include <cublasLt.h>

#include <map>
#include <type_traits>
#include <utility>

namespace kozero::cublaslt {

namespace {

void check(cublasStatus_t status, char const* call, Key const& key) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(fmt::format("{} refuses {} ({}: {}); look at the device, its driver and the version of cuBLAS", call,
                          to_text(key), cublasLtGetStatusName(status), cublasLtGetStatusString(status)));
}

template <auto destroy>
struct Destroy {
  template <class Opaque>
  void operator()(Opaque* descriptor) const {
    destroy(descriptor);
  }
};
template <class Descriptor, auto destroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Descriptor>, Destroy<destroy>>;
using Operation = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t type_of(Type type) {
  switch (type) {
  case Type::fp32: return CUDA_R_32F;
  case Type::bf16: return CUDA_R_16BF;
  case Type::fp16: return CUDA_R_16F;
  }
  return CUDA_R_32F;
}

template <class Value>
void set(Operation const& operation, cublasLtMatmulDescAttributes_t attribute, Value const& value, Key const& key) {
  check(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute", key);
}
template <class Value>
void set(Preference const& preference, cublasLtMatmulPreferenceAttributes_t attribute, Value const& value,
         Key const& key) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute", key);
}

/// cuBLASLt's A is our b and its B is our a.
Operation operation_of(Key const& key) {
  bool const rounds = key.operands == Type::fp32 && key.fp32 == Fp32Products::tf32;
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate", key);
  Operation operation(made);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, key.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, key);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, key.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, key);
  if (key.has_bias) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS, key);
  return operation;
}

/// Of a row-major matrix as it lies in memory, whose rows are cuBLASLt's columns.
Layout layout_of(std::int64_t rows, std::int64_t columns, std::int64_t stride, bool transposed, Type type,
                 Key const& key) {
  if (transposed) std::swap(rows, columns);
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), stride),
        "cublasLtMatrixLayoutCreate", key);
  return Layout(made);
}

Preference preference_of(Key const& key) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate", key);
  Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, key.workspace_bytes, key);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.b_alignment, key);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.a_alignment, key);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.c_alignment, key);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.c_alignment, key);
  if (key.result != Type::fp32) { // sums of parts of k would else be rounded to 16 bits, and pass fp16's range
    std::uint32_t const in_fp32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_fp32, key);
  }
  return preference;
}

using Cache = std::map<Key, Matmul>;

/// The library, and all that was asked of it. They go before Kokkos, and with it the device, does.
struct Library {
  cublasLtHandle_t handle = nullptr;
  Cache cache;
};

Library& library() {
  static Library one;
  if (one.handle) return one;
  cublasStatus_t const status = cublasLtCreate(&one.handle);
  KOZERO_REQUIRE(status == CUBLAS_STATUS_SUCCESS,
                 "cublasLtCreate failed ({}: {}); look at the device, its driver and the version of cuBLAS",
                 cublasLtGetStatusName(status), cublasLtGetStatusString(status));
  Kokkos::push_finalize_hook([] {
    one.cache.clear();
    cublasLtDestroy(one.handle);
    one.handle = nullptr;
  });
  return one;
}

char const* name_of(Type type) { return type == Type::fp32 ? "fp32" : type == Type::bf16 ? "bf16" : "fp16"; }

} // namespace

struct Matmul::Impl {
  Key key;
  Operation operation;
  Layout a, b, c; // ours; cuBLASLt's B, A and both C and D
  cublasLtMatmulAlgo_t algorithm = {};
};

Matmul::Matmul(Key const& key)
    : impl_(new Impl{key, operation_of(key), layout_of(key.m, key.k, key.a_stride, key.a_transposed, key.operands, key),
                     layout_of(key.k, key.n, key.b_stride, key.b_transposed, key.operands, key),
                     layout_of(key.m, key.n, key.c_stride, false, key.result, key)}) {
  Impl& impl = *impl_;
  if (key.has_bias) { // an address with that alignment, which is all that the heuristic looks at
    auto const* const somewhere = reinterpret_cast<void const*>(static_cast<std::uintptr_t>(key.bias_alignment));
    set(impl.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, somewhere, key);
  }
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(library().handle, impl.operation.get(), impl.b.get(), impl.a.get(), impl.c.get(),
                                       impl.c.get(), preference_of(key).get(), 1, &found, &count),
        "cublasLtMatmulAlgoGetHeuristic", key);
  check(count == 1 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic", key);
  impl.algorithm = found.algo;
}

Matmul::~Matmul() = default;

void Matmul::run(Addresses const& addresses, void* workspace, CUstream_st* stream) const {
  Impl const& impl = *impl_;
  Key const& key = impl.key;
  float const one = 1;
  float const of_old = key.accumulates ? 1 : 0;
  if (key.has_bias) set(impl.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, addresses.bias, key);
  check(cublasLtMatmul(library().handle, impl.operation.get(), &one, addresses.b, impl.b.get(), addresses.a,
                       impl.a.get(), &of_old, addresses.c, impl.c.get(), addresses.c, impl.c.get(), &impl.algorithm,
                       workspace, key.workspace_bytes, stream),
        "cublasLtMatmul", key);
}

Matmul const& matmul(Key const& key) {
  constexpr std::size_t limit = 512; // shapes; generating text makes no more than a training
  Cache& cache = library().cache;
  auto const place = cache.find(key);
  if (place != cache.end()) return place->second;
  if (cache.size() >= limit) cache.clear();
  return cache.try_emplace(key, key).first->second;
}

std::uint32_t alignment_of(void const* address) {
  auto const bits = reinterpret_cast<std::uintptr_t>(address) | 16u;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

std::string to_text(Key const& key) {
  return fmt::format(
      "c [{},{}] in {} {} a{} [{},{}] · b{} [{},{}]{}, operands in {}, rows {}, {} and {} elements apart, "
      "addresses multiples of {}, {} and {} bytes",
      key.m, key.n, name_of(key.result), key.accumulates ? "+=" : "=", key.a_transposed ? "ᵀ" : "", key.m, key.k,
      key.b_transposed ? "ᵀ" : "", key.k, key.n, key.has_bias ? " + bias" : "", name_of(key.operands), key.c_stride,
      key.a_stride, key.b_stride, key.c_alignment, key.a_alignment, key.b_alignment);
}

std::string description() {
  auto const version = cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

} // namespace kozero::cublaslt
