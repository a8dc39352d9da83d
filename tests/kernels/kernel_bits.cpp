// Prints a hash of what each kernel computes from fixed input, for threads_test: kernel_bits [TARGET]
// Host loops run as compiled for TARGET, "x86-64", "AVX2" or "AVX-512"; without, for the widest that there is.
#include "core/dtype.hpp"
#include "core/host_simd.hpp"
#include "core/runtime.hpp"
#include "kernels/attention.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/gelu.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_workspace.hpp"
#include "kernels/head.hpp"
#include "kernels/layernorm.hpp"
#include "kernels/linear.hpp"
#include "kernels/shapes.hpp"
#include "kernels/squares.hpp"
#include "kernels/token_groups.hpp"
#include "kernels/window_sums.hpp"
#include "support/matrices.hpp"

#include <bit>
#include <cstdio>
#include <string>

using namespace kozero;
using namespace kozero::test;

namespace {

// FNV-1a of the numbers' bits.
std::uint64_t hash(std::vector<Numbers> const& results) {
  std::uint64_t value = 14695981039346656037ull;
  for (Numbers const& numbers : results) {
    for (double const number : numbers) value = (value ^ std::bit_cast<std::uint64_t>(number)) * 1099511628211ull;
  }
  return value;
}

void print(std::string const& name, std::vector<Numbers> const& results) {
  std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(hash(results)));
}

template <class T>
std::string named(std::string const& kernel) {
  return kernel + "<" + name_of(dtype_of<T>) + ">";
}

template <class T>
void print_gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool turned_a, bool turned_b, Into into) {
  Matrix<T> const a(turned_a ? k : m, turned_a ? m : k, 0, normal_numbers(m * k, 1));
  Matrix<T> const b(turned_b ? n : k, turned_b ? k : n, 0, normal_numbers(n * k, 2));
  Matrix<float> const c(m, n, 0, normal_numbers(m * n, 3));
  gemm<T, float>(Lane(), m, n, k, c.view().data(), n, turned_a ? transposed<T>(a) : plain<T>(a),
                 turned_b ? transposed<T>(b) : plain<T>(b), nullptr, into);
  print(named<T>("gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k)), {c.get()});
}

template <class T>
void print_gemms() {
  print_gemm<T>(256, 768, 192, false, true, Into::overwrite);
  print_gemm<T>(192, 768, 256, true, false, Into::accumulate);
  print_gemm<T>(64, 64, 4096, false, false, Into::overwrite); // shapes where a library likes to cut k
  print_gemm<T>(128, 16, 20000, false, true, Into::overwrite);
  print_gemm<T>(1, 1, 30000, false, true, Into::overwrite);
  print_gemm<T>(48, 96, 9001, false, false, Into::overwrite);
  print_gemm<T>(1, 768, 769, false, true, Into::overwrite);
  print_gemm<T>(257, 1, 33, false, false, Into::overwrite);
  print_gemm<T>(5, 21, 7, true, true, Into::accumulate);
}

template <class T>
void print_linear() {
  std::int64_t const n = 515;
  std::int64_t const in = 130;
  std::int64_t const out = 333;
  Matrix<T> const x(n, in, 0, normal_numbers(n * in, 1));
  Matrix<T> const w(out, in, 0, normal_numbers(out * in, 2));
  Vector<T> const bias(normal_numbers(out, 3));
  Matrix<T> const y(n, out);
  Matrix<T> const dx(n, in);
  Matrix<float> const dw(out, in, 0, normal_numbers(out * in, 4));
  Vector<float> const dbias(normal_numbers(out, 5));
  linear_forward<T>(Lane(), y, x, w, bias);
  linear_backward<T>(Lane(), dx, dw, dbias, Vec<float>(), y, x, w);
  print(named<T>("linear"), {y.get(), dx.get(), dw.get(), dbias.get()});
}

std::vector<std::int32_t> some_tokens(std::int64_t n, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(i * i * 31 % vocabulary));
  return tokens;
}

template <class T>
void print_head() {
  std::int64_t const n = 210;
  std::int64_t const width = 65;
  std::int64_t const vocabulary = 5003;
  std::int64_t const chunk = head_chunk_rows(n, vocabulary);
  Matrix<T> const x(n, width, 0, normal_numbers(n * width, 1));
  Matrix<T> const w(vocabulary, width, 0, normal_numbers(vocabulary * width, 2));
  Matrix<float> const logits(chunk, padded_vocabulary(vocabulary));
  Matrix<T> const dlogits(chunk, padded_vocabulary(vocabulary));
  Vector<float> const losses(n);
  Matrix<T> const dx(n, width);
  Matrix<float> const dw(vocabulary, width, 0, normal_numbers(vocabulary * width, 3));
  auto const targets = DeviceArray(some_tokens(n, vocabulary));
  head_loss_and_gradient<T>(Lane(), losses, dx, dw, {logits, dlogits}, x, w, targets, 0.1f);
  print(named<T>("head"), {losses.get(), dx.get(), dw.get()});
}

template <class T>
void print_embedding() {
  std::int64_t const context = 33;
  std::int64_t const n = 4 * context;
  std::int64_t const width = 300;
  std::int64_t const vocabulary = 257;
  auto const tokens = some_tokens(n, vocabulary);
  std::vector<std::int32_t> starts(max_token_groups(n, vocabulary) + 1);
  std::vector<std::int32_t> positions(n);
  std::vector<std::int32_t> scratch(vocabulary);
  starts.resize(group_tokens(tokens, scratch, starts, positions) + 1);
  auto const starts_d = DeviceArray(starts);
  auto const positions_d = DeviceArray(positions);
  Matrix<T> const dx(n, width, 0, normal_numbers(n * width, 1));
  Matrix<float> const dwte(vocabulary, width, 0, normal_numbers(vocabulary * width, 2));
  Matrix<float> const dwpe(context, width, 0, normal_numbers(context * width, 3));
  embedding_backward<T>(Lane(), dwte, dwpe, dx, DeviceArray(tokens), {starts_d, positions_d});
  print(named<T>("embedding"), {dwte.get(), dwpe.get()});
}

template <class T>
void print_layernorm() {
  std::int64_t const n = 333;
  std::int64_t const width = 300;
  Matrix<T> const x(n, width, 0, normal_numbers(n * width, 1));
  Matrix<T> const y(n, width);
  Matrix<T> const dx(n, width, 0, normal_numbers(n * width, 2));
  Vector<T> const weight(normal_numbers(width, 3));
  Vector<T> const bias(normal_numbers(width, 4));
  Vector<float> const mean(n);
  Vector<float> const rstd(n);
  Vector<float> const dweight(normal_numbers(width, 5));
  Vector<float> const dbias(normal_numbers(width, 6));
  layernorm_forward<T>(Lane(), y, mean, rstd, x, weight, bias);
  layernorm_backward<T>(Lane(), dx, dweight, dbias, Vec<float>(), y, x, mean, rstd, weight);
  print(named<T>("layernorm"), {y.get(), mean.get(), rstd.get(), dx.get(), dweight.get(), dbias.get()});
}

template <class T>
void print_gelu() {
  std::int64_t const n = 50001;
  Vector<T> const x(normal_numbers(n, 1, 3));
  Vector<T> const y(n);
  Vector<T> const d(normal_numbers(n, 2));
  gelu_forward<T>(Lane(), y, x);
  gelu_backward<T>(Lane(), d, x);
  print(named<T>("gelu"), {y.get(), d.get()});
}

template <class T>
void print_attention(std::int64_t context, std::int64_t head_width) {
  AttentionShape const shape{2, context, 3};
  std::int64_t const n = shape.batch * context;
  std::int64_t const width = shape.heads * head_width;
  Matrix<T> const qkv(n, 3 * width, 0, normal_numbers(n * 3 * width, 1));
  Matrix<T> const dout(n, width, 0, normal_numbers(n * width, 2));
  Matrix<T> const out(n, width);
  Matrix<T> const dqkv(n, 3 * width);
  Vector<float> const logsumexp(n * shape.heads);
  Vector<float> const delta(n * shape.heads);
  attention_forward<T>(Lane(), shape, out, logsumexp, qkv);
  attention_backward<T>(Lane(), shape, dqkv, delta, dout, out, logsumexp, qkv);
  print(named<T>("attention " + std::to_string(context)), {out.get(), logsumexp.get(), dqkv.get()});
}

void print_sums() {
  Vector<float> const x(normal_numbers(100001, 1));
  std::int64_t const windows = 11;
  Vector<float> const losses(normal_numbers(windows * 333, 1));
  DeviceArray<double> const sums(windows);
  window_sums(Lane(), sums, losses);
  print("window_sums", {sums.get()});
}

template <class T>
void print_squares() {
  std::int64_t const n = 100001;
  Vector<T> const x(normal_numbers(n, 1));
  SquareNodes<Lane> const nodes(0, n, n);
  DeviceArray<double> const sums(nodes.size());
  nodes.compute(Lane(), sums.data(), x.data());
  SquareSum squares = square_sum(n);
  nodes.add_to(squares, sums.get().data());
  auto const columns = squares.total();
  print(named<T>("squares"), {Numbers(columns.begin(), columns.end())});
}

template <class T>
void print_all() {
  print_squares<T>();
  print_layernorm<T>();
  print_gelu<T>();
  print_attention<T>(200, 64);
  print_attention<T>(33, 7);
  print_gemms<T>();
  print_linear<T>();
  print_head<T>();
  print_embedding<T>();
}

} // namespace

int main(int argc, char** argv) {
  Runtime const runtime(argc, argv);
  Ledger ledger;
  GemmWorkspace const workspace(LazyLane(), Fp32Products::exact, ledger);
  for (HostTarget const target : {HostTarget::baseline, HostTarget::avx2, HostTarget::avx512}) {
    if (argc > 1 && std::string(argv[1]) == name_of(target)) set_host_target(target);
  }
  print_sums();
  print_all<float>();
  print_all<bf16>();
  print_all<fp16>();
  std::printf("threads %d as %s\n", DeviceExec().concurrency(), name_of(host_target()));
  return 0;
}
