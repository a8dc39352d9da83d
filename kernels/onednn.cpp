#include "kernels/onednn.hpp"

#include "core/error.hpp"

#include <dnnl.hpp>
#include <omp.h>

#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "kozero runs oneDNN on one thread a tile, which takes a oneDNN built for OpenMP or without threads"
#endif

namespace kozero::onednn {

namespace {

// oneDNN asks OpenMP how many threads there are, both when it compiles and when it runs. Inside a parallel region it
// keeps to one by itself; this makes it so where Kokkos runs without OpenMP, or with one thread.
class OneThread {
public:
  OneThread() { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(OneThread const&) = delete;
  OneThread& operator=(OneThread const&) = delete;

private:
  int before_ = omp_get_max_threads();
};

dnnl::engine const& processor() {
  static dnnl::engine const engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// An instruction set's value has the bits of all that it includes.
bool has(dnnl_cpu_isa_t wanted) {
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

Bf16Way choose_bf16_way() {
  char const* const text = std::getenv("KOZERO_BF16_GEMM");
  std::string_view const choice = text ? text : "";
  if (choice == "fp32") return Bf16Way::as_fp32;
  if (choice == "native") {
    KOZERO_REQUIRE(
        has(dnnl_cpu_isa_avx512_core_bf16),
        "KOZERO_BF16_GEMM is 'native' (but this processor, or DNNL_MAX_CPU_ISA, has no AVX-512 BF16); unset it");
    return Bf16Way::native;
  }
  KOZERO_REQUIRE(choice.empty(), "KOZERO_BF16_GEMM is '{}' (unknown); set it to 'native' or 'fp32', or unset it",
                 choice);
  return has(dnnl_cpu_isa_avx512_core_amx) ? Bf16Way::native : Bf16Way::as_fp32;
}

char const* instruction_set() {
#ifndef __x86_64__
  return "its choice of instructions"; // the names below are those of x86
#endif
  if (has(dnnl_cpu_isa_avx512_core_amx)) return "AMX";
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return "AVX-512 BF16";
  if (has(dnnl_cpu_isa_avx512_core)) return "AVX-512";
  if (has(dnnl_cpu_isa_avx2)) return "AVX2";
  return "baseline";
}

dnnl::memory::desc describe(std::int64_t rows, std::int64_t columns, dnnl::memory::data_type type, std::int64_t stride,
                            bool turned) {
  using Dims = dnnl::memory::dims;
  return {Dims{rows, columns}, type, turned ? Dims{1, stride} : Dims{stride, 1}};
}

auto tie(Bf16Matmul::Key const& key) {
  Shape const& s = key.shape;
  return std::make_tuple(s.m, s.n, s.k, s.stride, s.into, key.a_stride, key.b_stride, key.a_transposed,
                         key.b_transposed);
}

using Cache = std::map<decltype(tie({})), Bf16Matmul>;

Cache& cache() {
  static Cache all;
  return all;
}

} // namespace

void sgemm(Shape const& shape, float* sum, Operand<float> const& a, Operand<float> const& b) {
  auto const letter = [](Operand<float> const& operand) {
    return operand.read == Operand<float>::Read::transposed ? 'T' : 'N';
  };
  OneThread const alone;
  dnnl_status_t const status =
      dnnl_sgemm(letter(a), letter(b), shape.m, shape.n, shape.k, 1.0f, a.data, a.stride, b.data, b.stride,
                 shape.into == Into::accumulate ? 1.0f : 0.0f, sum, shape.stride);
  KOZERO_REQUIRE(status == dnnl_success,
                 "oneDNN failed in a {} x {} x {} product of fp32 (status {}); check the memory that is free", shape.m,
                 shape.n, shape.k, static_cast<int>(status));
}

Bf16Way bf16_way() {
  static Bf16Way const way = choose_bf16_way();
  return way;
}

struct Bf16Matmul::Impl {
  dnnl::memory::desc a, b, sum, scratch;
  dnnl::matmul matmul;
};

Bf16Matmul::Bf16Matmul(Key const& key) : impl_(std::make_unique<Impl>()) {
  using Type = dnnl::memory::data_type;
  Shape const& s = key.shape;
  impl_->a = describe(s.m, s.k, Type::bf16, key.a_stride, key.a_transposed);
  impl_->b = describe(s.k, s.n, Type::bf16, key.b_stride, key.b_transposed);
  impl_->sum = describe(s.m, s.n, Type::f32, s.stride, false);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.into == Into::accumulate) {
    dnnl::post_ops add;
    add.append_sum(1.0f);
    attributes.set_post_ops(add);
  }
  OneThread const alone;
#if DNNL_VERSION_MAJOR >= 3
  dnnl::matmul::primitive_desc const chosen(processor(), impl_->a, impl_->b, impl_->sum, attributes);
#else
  dnnl::matmul::primitive_desc const chosen({impl_->a, impl_->b, impl_->sum}, attributes, processor());
#endif
  impl_->scratch = chosen.scratchpad_desc();
  impl_->matmul = dnnl::matmul(chosen);
}

Bf16Matmul::~Bf16Matmul() = default;

std::int64_t Bf16Matmul::scratch_floats() const {
  return static_cast<std::int64_t>((impl_->scratch.get_size() + sizeof(float) - 1) / sizeof(float));
}

void Bf16Matmul::run(float* sum, bf16 const* a, bf16 const* b, float* scratch) const {
  // oneDNN takes inputs as void* too.
  auto const memory = [](dnnl::memory::desc const& desc, void const* data) {
    return dnnl::memory(desc, processor(), const_cast<void*>(data));
  };
  OneThread const alone;
  dnnl::stream stream(processor());
  impl_->matmul.execute(stream, {{DNNL_ARG_SRC, memory(impl_->a, a)},
                                 {DNNL_ARG_WEIGHTS, memory(impl_->b, b)},
                                 {DNNL_ARG_DST, memory(impl_->sum, sum)},
                                 {DNNL_ARG_SCRATCHPAD, memory(impl_->scratch, scratch)}});
  stream.wait();
}

Bf16Matmul const& bf16_matmul(Bf16Matmul::Key const& key) {
  auto const place = cache().find(tie(key));
  if (place != cache().end()) return place->second;
  return cache().try_emplace(tie(key), key).first->second;
}

void forget_old() {
  constexpr std::size_t limit = 512;
  if (cache().size() > limit) cache().clear();
}

std::string description() {
  dnnl_version_t const& version = *dnnl_version();
  return fmt::format("oneDNN {}.{}.{}, {}, bf16 {}", version.major, version.minor, version.patch, instruction_set(),
                     bf16_way() == Bf16Way::native ? "native" : "as fp32");
}

} // namespace kozero::onednn
