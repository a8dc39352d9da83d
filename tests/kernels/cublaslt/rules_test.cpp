// The rules that cuBLASLt's stand-in holds calls to: a right call passes, and each rule refuses one that breaks it
// alone.
#include "kernels/cublaslt/stand_in.hpp"
#include "support/catch.hpp"

#include "core/half.hpp"

#include <vector>

using namespace kozero;
using namespace kozero::test;
namespace stand_in = kozero::test::cublaslt_stand_in;

namespace {

struct Matrix {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t leading_dimension;
  void* at;
};

/// d [8,5] = a [8,16] · bᵀ, b [5,16], + bias, in bf16, with all that a caller may get wrong.
struct Call {
  std::vector<bf16> memory = std::vector<bf16>(4096);
  bf16* base() { // at a multiple of 256 bytes
    auto const begin = reinterpret_cast<std::uintptr_t>(memory.data());
    return reinterpret_cast<bf16*>((begin + 255) / 256 * 256);
  }

  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  Matrix a{CUDA_R_16BF, 8, 16, 8, base()}, b{CUDA_R_16BF, 5, 16, 6, base() + 256},
      c{CUDA_R_16BF, 8, 5, 8, base() + 512}, d = c;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  void const* bias = base() + 768;
  void const* later_bias = bias;
  std::uint32_t alignment_a = 16, alignment_d = 16;
  std::uint64_t wanted_workspace = 512, workspace_bytes = 512;
  void* workspace = base() + 1024;
  std::size_t bias_attribute_bytes = sizeof(void*);
  int wanted = 1;
  std::int64_t later_ldb = 6;
  float beta = 0;

  cublasStatus_t run() {
    cublasLtHandle_t handle = nullptr;
    cublasLtCreate(&handle);
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatmulDescCreate(&operation, compute, scale);
    cublasLtMatrixLayout_t layouts[5] = {};
    Matrix later_b = b;
    later_b.leading_dimension = later_ldb;
    int place = 0;
    for (Matrix const& one : {a, b, c, d, later_b}) {
      cublasLtMatrixLayoutCreate(&layouts[place++], one.type, one.rows, one.columns, one.leading_dimension);
    }
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    cublasStatus_t const status = multiply(handle, operation, layouts, preference);
    for (auto* const layout : layouts) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatmulDescDestroy(operation);
    return status;
  }

private:
  cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                          cublasLtMatrixLayout_t const* layouts, cublasLtMatmulPreference_t preference) const {
    std::int32_t const turned = CUBLAS_OP_T;
    cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &turned, sizeof turned);
    cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasStatus_t status =
        cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, bias_attribute_bytes);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    auto const prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, wanted_workspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_a);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_d);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_d);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_d);
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    status = cublasLtMatmulAlgoGetHeuristic(handle, operation, layouts[0], layouts[1], layouts[2], layouts[3],
                                            preference, wanted, &result, &found);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    REQUIRE(found == 1);
    cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &later_bias, sizeof later_bias);
    float const one = 1;
    return cublasLtMatmul(handle, operation, &one, a.at, layouts[0], b.at, layouts[4], &beta, c.at, layouts[2], d.at,
                          layouts[3], &result.algo, workspace, workspace_bytes, nullptr);
  }
};

template <class Break>
void check_refusal(char const* rule, Break const& breaks, cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE) {
  Call call;
  REQUIRE(call.run() == CUBLAS_STATUS_SUCCESS);
  breaks(call);
  INFO(rule);
  CHECK(call.run() == status);
  CHECK(stand_in::refusal() == rule);
}

template <class T>
void* moved(void* at, int elements) {
  return static_cast<T*>(at) + elements;
}

} // namespace

TEST_CASE("each rule of the library refuses a call that breaks it alone") {
  auto const not_supported = CUBLAS_STATUS_NOT_SUPPORTED;
  SECTION("shapes") {
    check_refusal("a matrix has rows and columns", [](Call& call) { call.a.columns = call.b.columns = 0; });
    check_refusal("the leading dimension is not below the rows", [](Call& call) { call.a.leading_dimension = 7; });
    check_refusal("the leading dimension is not below the rows", [](Call& call) { call.b.leading_dimension = 4; });
    check_refusal("the leading dimension is not below the rows", [](Call& call) { call.d.leading_dimension = 7; });
    check_refusal("op(A)'s columns are op(B)'s rows", [](Call& call) { call.a.columns = 15; });
    check_refusal("D has op(A)'s rows", [](Call& call) { call.d.rows = call.c.rows = 7; });
    check_refusal("D has op(B)'s columns", [](Call& call) { call.b.rows = 6; });
    check_refusal("C has the shape of D", [](Call& call) { call.c.rows = 7; });
  }
  SECTION("types") {
    char const* const rule = "the types go together";
    check_refusal(
        rule, [](Call& call) { call.b.type = CUDA_R_16F; }, not_supported);
    check_refusal(
        rule, [](Call& call) { call.c.type = call.d.type = CUDA_R_16F; }, not_supported);
    check_refusal(
        rule, [](Call& call) { call.c.type = CUDA_R_32F; }, not_supported);
    check_refusal(
        rule, [](Call& call) { call.scale = CUDA_R_16BF; }, not_supported);
    check_refusal(
        rule, [](Call& call) { call.compute = CUBLAS_COMPUTE_32F_FAST_TF32; }, not_supported);
  }
  SECTION("epilogue") {
    check_refusal(
        "the epilogue is none or BIAS", [](Call& call) { call.epilogue = 32; }, not_supported);
    check_refusal(
        "BIAS has an address", [](Call& call) { call.bias = nullptr; }, not_supported);
    check_refusal(
        "a bias is aligned to its type", [](Call& call) { call.bias = static_cast<char const*>(call.bias) + 1; },
        not_supported);
    check_refusal("the bias is aligned as the heuristic was told",
                  [](Call& call) { call.later_bias = static_cast<bf16 const*>(call.bias) + 1; });
    check_refusal("an attribute's value has the attribute's size", [](Call& call) { call.bias_attribute_bytes = 4; });
  }
  SECTION("addresses") {
    check_refusal("an alignment is a power of two", [](Call& call) { call.alignment_a = 12; });
    check_refusal("an alignment is not below the size of an element", [](Call& call) { call.alignment_a = 1; });
    check_refusal("addresses are aligned as the heuristic was told",
                  [](Call& call) { call.a.at = moved<bf16>(call.a.at, 1); });
    check_refusal("addresses are aligned as the heuristic was told",
                  [](Call& call) { call.c.at = call.d.at = moved<bf16>(call.d.at, 4); });
    check_refusal("a matrix has an address", [](Call& call) { call.a.at = nullptr; });
    check_refusal("a matrix has an address", [](Call& call) {
      call.c.at = nullptr;
      call.beta = 1;
    });
    check_refusal("C and D in one place have one layout", [](Call& call) { call.c.leading_dimension = 9; });
    check_refusal("D overlaps neither A nor B", [](Call& call) { call.c.at = call.d.at = call.a.at; });
  }
  SECTION("workspace") {
    check_refusal("the workspace is as large as the algorithm needs", [](Call& call) { call.workspace_bytes = 256; });
    check_refusal("the workspace begins at a multiple of 256",
                  [](Call& call) { call.workspace = moved<bf16>(call.workspace, 8); });
    check_refusal("the workspace is nobody else's", [](Call& call) { call.workspace = call.d.at; });
  }
  SECTION("algorithms") {
    check_refusal("at least one algorithm is wanted", [](Call& call) { call.wanted = 0; });
    check_refusal("the algorithm was found for this product", [](Call& call) { call.later_ldb = 5; });
  }
}

TEST_CASE("without a handle nothing is computed") {
  Call call;
  REQUIRE(call.run() == CUBLAS_STATUS_SUCCESS);
  cublasLtDestroy(nullptr);
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  CHECK(cublasLtMatmulAlgoGetHeuristic(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 1, &result,
                                       &found) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(found == 0);
}
