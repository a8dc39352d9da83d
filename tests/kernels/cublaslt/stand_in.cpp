#include "kernels/cublaslt/stand_in.hpp"

#include "core/float_bits.hpp"
#include "core/half.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): the names are NVIDIA's
struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t a_operation = CUBLAS_OP_N, b_operation = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void const* bias = nullptr;
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t leading_dimension;
  friend bool operator==(cublasLtMatrixLayoutOpaque_t const&, cublasLtMatrixLayoutOpaque_t const&) = default;
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::array<std::uint32_t, 4> alignments = {256, 256, 256, 256};
};
// NOLINTEND(readability-identifier-naming)

namespace kozero::test::cublaslt_stand_in {

namespace {

using Operation = cublasLtMatmulDescOpaque_t;
using Layout = cublasLtMatrixLayoutOpaque_t;
using Preference = cublasLtMatmulPreferenceOpaque_t;
using Text = std::string; // a broken rule; empty where none is

struct State {
  Work work = Work::computes;
  bool has_handle = false;
  std::set<Product> products;
  std::int64_t questions = 0, descriptors = 0;
  std::string refusal;
  std::vector<Product> algorithms; // by the number that an algorithm holds, from 1
};

State& state() {
  static State one;
  return one;
}

cublasStatus_t refuse(Text rule, cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE) {
  state().refusal = std::move(rule);
  return status;
}

template <class Descriptor>
cublasStatus_t make(Descriptor** made, Descriptor const& like) {
  *made = new Descriptor(like);
  ++state().descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
template <class Descriptor>
cublasStatus_t destroy(Descriptor* one) {
  delete one;
  --state().descriptors;
  return CUBLAS_STATUS_SUCCESS;
}

template <class Value>
cublasStatus_t set(Value& to, void const* value, std::size_t bytes) {
  if (bytes != sizeof to) return refuse("an attribute's value has the attribute's size");
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// ---- the rules

std::uint32_t size_of(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

/// The rows of cuBLASLt's table of types for sums in fp32.
bool types_go_together(Operation const& operation, Layout const& a, Layout const& b, Layout const& c, Layout const& d) {
  if (a.type != b.type || c.type != d.type || operation.scale != CUDA_R_32F) return false;
  if (operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32) return a.type == CUDA_R_32F && d.type == CUDA_R_32F;
  return d.type == a.type || d.type == CUDA_R_32F;
}

bool is_sound(Layout const& one) {
  return one.rows > 0 && one.columns > 0 && one.leading_dimension >= static_cast<std::int64_t>(one.rows);
}

Text broken_by_shapes(Operation const& operation, Layout const& a, Layout const& b, Layout const& c, Layout const& d) {
  for (Layout const* const one : {&a, &b, &c, &d}) {
    if (one->rows == 0 || one->columns == 0) return "a matrix has rows and columns";
    if (!is_sound(*one)) return "the leading dimension is not below the rows";
  }
  bool const turned_a = operation.a_operation == CUBLAS_OP_T;
  bool const turned_b = operation.b_operation == CUBLAS_OP_T;
  if ((turned_a ? a.rows : a.columns) != (turned_b ? b.columns : b.rows)) return "op(A)'s columns are op(B)'s rows";
  if ((turned_a ? a.columns : a.rows) != d.rows) return "D has op(A)'s rows";
  if ((turned_b ? b.rows : b.columns) != d.columns) return "D has op(B)'s columns";
  if (c.rows != d.rows || c.columns != d.columns) return "C has the shape of D";
  return "";
}

Text broken_by_epilogue(Operation const& operation, Layout const& d) {
  if (operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return "";
  if (operation.epilogue != CUBLASLT_EPILOGUE_BIAS) return "the epilogue is none or BIAS";
  if (!operation.bias) return "BIAS has an address";
  if (reinterpret_cast<std::uintptr_t>(operation.bias) % size_of(d.type) != 0) return "a bias is aligned to its type";
  return "";
}

Text broken_by_preference(Preference const& preference, std::array<Layout const*, 4> const& matrices) {
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    std::uint32_t const alignment = preference.alignments[i];
    if (!std::has_single_bit(alignment)) return "an alignment is a power of two";
    if (alignment < size_of(matrices[i]->type)) return "an alignment is not below the size of an element";
  }
  return "";
}

std::uint32_t alignment_of(void const* address) {
  return 1u << std::min(std::countr_zero(reinterpret_cast<std::uintptr_t>(address)), 8);
}

/// What the heuristic knows, without the preference.
Product product_of(Operation const& operation, Layout const& a, Layout const& b, Layout const& d) {
  bool const turned_a = operation.a_operation == CUBLAS_OP_T;
  bool const with_bias = operation.epilogue == CUBLASLT_EPILOGUE_BIAS;
  return {.rows = d.rows,
          .columns = d.columns,
          .inner = turned_a ? a.rows : a.columns,
          .lda = a.leading_dimension,
          .ldb = b.leading_dimension,
          .ldd = d.leading_dimension,
          .a_transposed = turned_a,
          .b_transposed = operation.b_operation == CUBLAS_OP_T,
          .has_bias = with_bias,
          .operands = a.type,
          .result = d.type,
          .compute = operation.compute,
          .bias_alignment = with_bias ? std::min(alignment_of(operation.bias), 16u) : 0};
}

struct Addresses {
  void const *a, *b, *c;
  void* d;
  void const* bias;
};

struct Memory {
  void const* begin;
  std::uint64_t bytes;
};

Memory memory_of(void const* begin, Layout const& one) {
  return {begin,
          (static_cast<std::uint64_t>(one.leading_dimension) * (one.columns - 1) + one.rows) * size_of(one.type)};
}

bool overlap(Memory const& one, Memory const& other) {
  auto const* const a = static_cast<char const*>(one.begin);
  auto const* const b = static_cast<char const*>(other.begin);
  return a < b + other.bytes && b < a + one.bytes;
}

Text broken_by_addresses(Product const& algorithm, Addresses const& at, float beta,
                         std::array<Layout const*, 4> const& matrices, Memory const& workspace) {
  if (!at.a || !at.b || !at.d || (beta != 0 && !at.c)) return "a matrix has an address";
  std::array<void const*, 4> const all = {at.a, at.b, at.c, at.d};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] && alignment_of(all[i]) < algorithm.alignments[i])
      return "addresses are aligned as the heuristic was told";
  }
  if (algorithm.has_bias && alignment_of(at.bias) < algorithm.bias_alignment) {
    return "the bias is aligned as the heuristic was told";
  }
  if (at.c == at.d && !(*matrices[2] == *matrices[3])) return "C and D in one place have one layout";
  Memory const d = memory_of(at.d, *matrices[3]);
  if (overlap(d, memory_of(at.a, *matrices[0])) || overlap(d, memory_of(at.b, *matrices[1]))) {
    return "D overlaps neither A nor B";
  }
  if (workspace.bytes < algorithm.workspace_bytes) return "the workspace is as large as the algorithm needs";
  if (workspace.bytes > 0 && alignment_of(workspace.begin) < 256) return "the workspace begins at a multiple of 256";
  if (overlap(workspace, d)) return "the workspace is nobody else's";
  return "";
}

// ---- the numbers

/// 10 bits after the point, ties to even.
float to_tf32(float value) {
  std::uint32_t const bits = detail::bits_of_float(value);
  return detail::float_of_bits((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

template <class Use>
void with_type(cudaDataType_t type, Use const& use) {
  if (type == CUDA_R_32F) use(float());
  if (type == CUDA_R_16F) use(fp16());
  if (type == CUDA_R_16BF) use(bf16());
}

/// X by rows, or its transpose by rows.
std::vector<double> read(void const* from, Layout const& layout, bool transposed, bool rounds) {
  std::vector<double> values(layout.rows * layout.columns);
  with_type(layout.type, [&]<class T>(T) {
    auto const* const elements = static_cast<T const*>(from);
    for (std::uint64_t j = 0; j < layout.columns; ++j) {
      for (std::uint64_t i = 0; i < layout.rows; ++i) {
        auto const value = static_cast<float>(elements[j * static_cast<std::uint64_t>(layout.leading_dimension) + i]);
        values[transposed ? j * layout.rows + i : i * layout.columns + j] = rounds ? to_tf32(value) : value;
      }
    }
  });
  return values;
}

/// Two to six: another number for nearly every change of an alignment.
std::uint64_t parts_of(Product const& algorithm) {
  std::uint64_t parts = 0;
  for (std::uint32_t const bytes : algorithm.alignments) parts += static_cast<std::uint64_t>(std::countr_zero(bytes));
  return std::min(algorithm.inner, 2 + parts % 5);
}

/// Σ a [rows,inner] · b [columns,inner], of one row each.
template <class R>
float sum_of_parts(std::vector<double> const& a, std::vector<double> const& b, std::uint64_t i, std::uint64_t j,
                   Product const& algorithm) {
  std::uint64_t const k = algorithm.inner, parts = parts_of(algorithm);
  bool const rounds =
      (algorithm.reductions & (CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)) != 0;
  float sum = 0;
  for (std::uint64_t part = 0; part < parts; ++part) {
    double here = 0;
    for (std::uint64_t l = part * k / parts; l < (part + 1) * k / parts; ++l) here += a[i * k + l] * b[j * k + l];
    sum += static_cast<float>(here);
    if (rounds) sum = static_cast<float>(static_cast<R>(sum));
  }
  return sum;
}

void compute(Operation const& operation, Addresses const& at, std::array<Layout const*, 4> const& matrices, float alpha,
             float beta, Product const& algorithm) {
  bool const tf32 = operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  auto const a = read(at.a, *matrices[0], algorithm.a_transposed, tf32);
  auto const b = read(at.b, *matrices[1], !algorithm.b_transposed, tf32);
  with_type(algorithm.result, [&]<class R>(R) {
    auto const* const old = static_cast<R const*>(at.c);
    auto* const to = static_cast<R*>(at.d);
    for (std::uint64_t j = 0; j < algorithm.columns; ++j) {
      for (std::uint64_t i = 0; i < algorithm.rows; ++i) {
        std::uint64_t const place = j * static_cast<std::uint64_t>(algorithm.ldd) + i;
        float value = alpha * sum_of_parts<R>(a, b, i, j, algorithm);
        if (beta != 0) value += beta * static_cast<float>(old[place]);
        if (algorithm.has_bias) value += static_cast<float>(static_cast<R const*>(at.bias)[i]);
        to[place] = static_cast<R>(value);
      }
    }
  });
}

/// Nobody may count on what is in there.
void spoil(void* workspace, std::size_t bytes) {
  std::size_t const edge = std::min<std::size_t>(bytes, 4096);
  if (edge == 0) return;
  std::memset(workspace, 0xff, edge);
  std::memset(static_cast<char*>(workspace) + bytes - edge, 0xff, edge);
}

} // namespace

void set_work(Work work) { state().work = work; }
std::set<Product> const& products() { return state().products; }
void forget_products() { state().products.clear(); }
std::int64_t questions() { return state().questions; }
std::int64_t descriptors() { return state().descriptors; }
std::string const& refusal() { return state().refusal; }

} // namespace kozero::test::cublaslt_stand_in

using namespace kozero::test::cublaslt_stand_in;

std::size_t cublasLtGetVersion() { return 130100; }
char const* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown";
}
char const* cublasLtGetStatusString(cublasStatus_t) { return refusal().c_str(); }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static cublasLtContext one;
  *handle = &one;
  state().has_handle = true;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  state().has_handle = false;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return make(operation, {.compute = compute, .scale = scale});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) { return destroy(operation); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              void const* value, std::size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA: return set(operation->a_operation, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB: return set(operation->b_operation, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(operation->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(operation->bias, value, bytes);
  }
  return refuse("an attribute is one that there is");
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading_dimension) {
  return make(layout, {type, rows, columns, leading_dimension});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) { return make(preference, {}); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, void const* value,
                                                    std::size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(preference->workspace_bytes, value, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(preference->reductions, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(preference->alignments[0], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(preference->alignments[1], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(preference->alignments[2], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(preference->alignments[3], value, bytes);
  }
  return refuse("an attribute is one that there is");
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  ++state().questions;
  *found = 0;
  if (!state().has_handle) return refuse("there is a handle", CUBLAS_STATUS_NOT_INITIALIZED);
  if (wanted < 1) return refuse("at least one algorithm is wanted");
  if (Text rule = broken_by_shapes(*operation, *a, *b, *c, *d); !rule.empty()) return refuse(rule);
  if (!types_go_together(*operation, *a, *b, *c, *d)) {
    return refuse("the types go together", CUBLAS_STATUS_NOT_SUPPORTED);
  }
  if (Text rule = broken_by_epilogue(*operation, *d); !rule.empty()) return refuse(rule, CUBLAS_STATUS_NOT_SUPPORTED);
  if (Text rule = broken_by_preference(*preference, {a, b, c, d}); !rule.empty()) return refuse(rule);
  Product& algorithm = state().algorithms.emplace_back(product_of(*operation, *a, *b, *d));
  algorithm.alignments = preference->alignments;
  algorithm.workspace_bytes = preference->workspace_bytes;
  algorithm.reductions = preference->reductions;
  results[0] = {.algo = {{state().algorithms.size()}},
                .workspaceSize = preference->workspace_bytes,
                .state = CUBLAS_STATUS_SUCCESS};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, void const* alpha, void const* a,
                              cublasLtMatrixLayout_t a_layout, void const* b, cublasLtMatrixLayout_t b_layout,
                              void const* beta, void const* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, cublasLtMatmulAlgo_t const* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t) {
  if (!state().has_handle) return refuse("there is a handle", CUBLAS_STATUS_NOT_INITIALIZED);
  std::array<Layout const*, 4> const matrices = {a_layout, b_layout, c_layout, d_layout};
  Product const& found = state().algorithms.at(algorithm->data[0] - 1);
  Product asked = product_of(*operation, *a_layout, *b_layout, *d_layout);
  asked.alignments = found.alignments;
  asked.bias_alignment = found.bias_alignment;
  asked.workspace_bytes = found.workspace_bytes;
  asked.reductions = found.reductions;
  if (asked != found) return refuse("the algorithm was found for this product");
  Addresses const at = {a, b, c, d, operation->bias};
  float const of_old = *static_cast<float const*>(beta);
  if (Text rule = broken_by_addresses(found, at, of_old, matrices, {workspace, workspace_bytes}); !rule.empty()) {
    return refuse(rule);
  }
  state().products.insert(found);
  spoil(workspace, workspace_bytes);
  if (state().work == Work::computes) {
    compute(*operation, at, matrices, *static_cast<float const*>(alpha), of_old, found);
  }
  return CUBLAS_STATUS_SUCCESS;
}
