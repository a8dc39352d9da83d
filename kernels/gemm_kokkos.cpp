// gemm by Kokkos Kernels, for devices and for hosts without oneDNN. It multiplies in fp32; bf16 and fp16 are widened
// piece by piece in device memory of bounded size.
#include "kernels/gemm.hpp"
#include "kernels/gemm_start.hpp"
#include "kernels/gemm_workspace.hpp"

#include <KokkosBlas3_gemm.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace kozero {

namespace {

constexpr std::int64_t piece = 2048; // rows or columns of what is widened at once: three squares of it, 48 MiB

// A row-major matrix as BLAS has it: column-major, and so its transpose.
template <class T>
auto columns_of(T* data, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  Kokkos::View<T**, Kokkos::LayoutLeft, DeviceMemory::space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const all(
      data, stride, rows);
  return Kokkos::subview(all, std::make_pair(std::int64_t{0}, columns), Kokkos::ALL);
}

// Kokkos Kernels has learnt to take an execution space; before, it used the default one.
template <class Exec, class A, class B, class C>
void call_blas(Exec const& exec, char const* read_a, char const* read_b, A const& a, B const& b, float beta,
               C const& c) {
  if constexpr (requires { KokkosBlas::gemm(exec, read_a, read_b, 1.0f, a, b, beta, c); }) {
    KokkosBlas::gemm(exec, read_a, read_b, 1.0f, a, b, beta, c);
  } else {
    exec.fence();
    KokkosBlas::gemm(read_a, read_b, 1.0f, a, b, beta, c);
    Kokkos::fence();
  }
}

// c (+)= a · b, as cᵀ (+)= bᵀ · aᵀ in BLAS' order.
void sgemm(Lane const& lane, std::int64_t m, std::int64_t n, std::int64_t k, float* c, std::int64_t c_stride,
           Operand<float> const& a, Operand<float> const& b, Into into) {
  bool const turned_a = a.read == Operand<float>::Read::transposed;
  bool const turned_b = b.read == Operand<float>::Read::transposed;
  auto const a_columns = columns_of(a.data, a.stride, turned_a ? k : m, turned_a ? m : k);
  auto const b_columns = columns_of(b.data, b.stride, turned_b ? n : k, turned_b ? k : n);
  auto const c_columns = columns_of(c, c_stride, m, n);
  float const beta = into == Into::accumulate ? 1.0f : 0.0f;
  enqueue(lane, "kozero::gemm", {touched(a, m, k), touched(b, k, n)}, {touched(c, c_stride, m, n)},
          [=](Lane::Exec const& exec) {
            call_blas(exec, turned_b ? "T" : "N", turned_a ? "T" : "N", b_columns, a_columns, beta, c_columns);
          });
}

template <class To, class From>
void copy_rows(Lane const& lane, std::int64_t m, std::int64_t n, To* to, std::int64_t to_stride, From const* from,
               std::int64_t from_stride) {
  launch(
      lane, "kozero::gemm::copy_rows", Range{m * n}, KOKKOS_LAMBDA(std::int64_t index) {
        std::int64_t const i = index / n;
        std::int64_t const j = index % n;
        to[i * to_stride + j] = static_cast<To>(static_cast<float>(from[i * from_stride + j]));
      });
}

// Device memory for widened pieces of a, b and c: made once, grown to what the largest product needs, freed before
// Kokkos ends. One lane at a time may use it.
class Workspace {
public:
  enum Use { of_a, of_b, of_c };
  float* at_least(Lane const& lane, Use use, std::int64_t count) {
    Memory& memory = memory_[use];
    if (static_cast<std::int64_t>(memory.extent(0)) < count) {
      lane.fence("growing workspace");
      memory = Memory(); // the old one goes first
      memory = Memory(Kokkos::view_alloc(Kokkos::WithoutInitializing, "kozero::gemm::workspace"),
                      static_cast<std::size_t>(count));
    }
    return memory.data();
  }
  static Workspace& shared() {
    static Workspace all;
    static bool const hooked = [] {
      Kokkos::push_finalize_hook([] { all = Workspace(); });
      return true;
    }();
    static_cast<void>(hooked);
    return all;
  }

private:
  using Memory = Kokkos::View<float*, DeviceMemory::space>;
  Memory memory_[3];
};

// The piece of an operand that has rows [row, row + m) and columns [column, column + n) of the matrix that is read.
template <class T>
Operand<float> widened(Lane const& lane, Operand<T> const& all, std::int64_t row, std::int64_t column, std::int64_t m,
                       std::int64_t n, Workspace::Use use) {
  bool const turned = all.read == Operand<T>::Read::transposed;
  if (turned) {
    std::swap(row, column);
    std::swap(m, n);
  }
  float* const to = Workspace::shared().at_least(lane, use, m * n);
  copy_rows(lane, m, n, to, n, all.data + row * all.stride + column, all.stride);
  return {to, n, turned ? Operand<float>::Read::transposed : Operand<float>::Read::plain};
}

} // namespace

template <class T, class R>
void gemm(Lane const& lane, std::int64_t m, std::int64_t n, std::int64_t k, R* c, std::int64_t c_stride, Operand<T> a,
          Operand<T> b, T const* bias, Into into) {
  if (m == 0 || n == 0) return;
  GemmWorkspace::of(lane); // asked for, and not used: what its own lane lacks must show on every build
  bool const filled = bias != nullptr || into == Into::accumulate || k == 0;
  if constexpr (std::is_same_v<T, float>) {
    if (filled) start_gemm_sum(lane, m, n, c, c_stride, c, c_stride, bias, into);
    if (k > 0) sgemm(lane, m, n, k, c, c_stride, a, b, filled ? Into::accumulate : Into::overwrite);
  } else {
    for (std::int64_t row = 0; row < m; row += piece) {
      for (std::int64_t column = 0; column < n; column += piece) {
        std::int64_t const m_here = std::min(piece, m - row);
        std::int64_t const n_here = std::min(piece, n - column);
        R* const to = c + row * c_stride + column;
        float* sum = nullptr;
        std::int64_t stride = c_stride;
        if constexpr (std::is_same_v<R, float>) {
          sum = to;
        } else {
          sum = Workspace::shared().at_least(lane, Workspace::of_c, m_here * n_here);
          stride = n_here;
        }
        if (filled)
          start_gemm_sum(lane, m_here, n_here, sum, stride, to, c_stride, bias ? bias + column : nullptr, into);
        for (std::int64_t depth = 0; depth < k; depth += piece) {
          std::int64_t const k_here = std::min(piece, k - depth);
          sgemm(lane, m_here, n_here, k_here, sum, stride,
                widened(lane, a, row, depth, m_here, k_here, Workspace::of_a),
                widened(lane, b, depth, column, k_here, n_here, Workspace::of_b),
                filled || depth > 0 ? Into::accumulate : Into::overwrite);
        }
        if constexpr (!std::is_same_v<R, float>) copy_rows(lane, m_here, n_here, to, c_stride, sum, stride);
      }
    }
  }
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

GemmTraits gemm_traits() { return {}; }

std::string gemm_backend() { return "Kokkos Kernels on Kokkos " + kokkos_version() + ", bf16 as fp32"; }

} // namespace kozero
