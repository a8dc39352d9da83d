// gemm on hosts: tiles of c in parallel, each by single-threaded oneDNN. oneDNN's own threads are not used, as they may
// cut k where the number of threads says, which moves bits.
#include "core/host_simd.hpp"
#include "core/launch.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_grid.hpp"
#include "kernels/gemm_workspace.hpp"
#include "kernels/onednn.hpp"

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>

namespace kozero {

static_assert(std::is_same_v<DeviceExec, HostExec>, "gemm_onednn.cpp works on host memory; use gemm_kokkos.cpp");

namespace {

// Memory of one thread: made once, grown to what the largest tile needs.
class Scratch {
public:
  float* floats(std::int64_t count) {
    if (count > count_) {
      memory_.reset(new (alignment) float[static_cast<std::size_t>(count)]);
      count_ = count;
    }
    return memory_.get();
  }

private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(float* pointer) const { ::operator delete[](pointer, alignment); }
  };
  std::unique_ptr<float, Free> memory_;
  std::int64_t count_ = 0;
};

thread_local Scratch operand_a, operand_b, result, library;

// One product as all tiles see it.
template <class T, class R>
struct Product {
  GemmGrid grid;
  R* c;
  std::int64_t c_stride;
  Operand<T> a;
  Operand<T> b;
  T const* bias;
  Into into;
};

struct Tile {
  std::int64_t row, column; // of its first element
  std::int64_t m, n;
};

// Tiles one after another share columns of b.
Tile tile_at(GemmGrid const& grid, std::int64_t index) {
  std::int64_t const i = index % grid.m.parts();
  std::int64_t const j = index / grid.m.parts();
  return {grid.m.begin(i), grid.n.begin(j), grid.m.size(i), grid.n.size(j)};
}

// Rows of copies are 64 bytes longer than they need to be: a length near a power of two would put a column of them
// into the same few lines of a cache.
std::int64_t padded(std::int64_t columns) { return (columns + 15) / 16 * 16 + 16; }

template <class T>
void widen(float* to, std::int64_t to_stride, T const* from, std::int64_t from_stride, std::int64_t m, std::int64_t n) {
  host_simd([=] {
    for (std::int64_t i = 0; i < m; ++i) {
      KOZERO_INDEPENDENT
      for (std::int64_t j = 0; j < n; ++j) to[i * to_stride + j] = static_cast<float>(from[i * from_stride + j]);
    }
  });
}

template <class T>
void narrow(T* to, std::int64_t to_stride, float const* from, std::int64_t from_stride, std::int64_t m,
            std::int64_t n) {
  host_simd([=] {
    for (std::int64_t i = 0; i < m; ++i) {
      KOZERO_INDEPENDENT
      for (std::int64_t j = 0; j < n; ++j) to[i * to_stride + j] = static_cast<T>(from[i * from_stride + j]);
    }
  });
}

// The part of an operand that has rows [row, row + m) and columns [column, column + n) of the matrix that is read.
template <class T>
Operand<T> part_of(Operand<T> const& all, std::int64_t row, std::int64_t column) {
  bool const turned = all.read == Operand<T>::Read::transposed;
  std::int64_t const offset = turned ? column * all.stride + row : row * all.stride + column;
  return {all.data + offset, all.stride, all.read};
}

// A copy of an m × n operand in fp32, small enough to stay in cache.
template <class T>
Operand<float> widened(Operand<T> const& from, std::int64_t m, std::int64_t n, Scratch& scratch) {
  bool const turned = from.read == Operand<T>::Read::transposed;
  std::int64_t const rows = turned ? n : m;
  std::int64_t const columns = turned ? m : n;
  float* const to = scratch.floats(rows * padded(columns));
  widen(to, padded(columns), from.data, from.stride, rows, columns);
  return {to, padded(columns), turned ? Operand<float>::Read::transposed : Operand<float>::Read::plain};
}

// What the products of a tile are added to: c's old content and the bias.
template <class T, class R>
void fill(float* sum, std::int64_t stride, Product<T, R> const& product, Tile const& tile) {
  R const* const old =
      product.into == Into::accumulate ? product.c + tile.row * product.c_stride + tile.column : nullptr;
  T const* const bias = product.bias ? product.bias + tile.column : nullptr;
  host_simd([=, old_stride = product.c_stride, m = tile.m, n = tile.n] {
    for (std::int64_t i = 0; i < m; ++i) {
      KOZERO_INDEPENDENT
      for (std::int64_t j = 0; j < n; ++j) {
        float const before = old ? static_cast<float>(old[i * old_stride + j]) : 0.0f;
        sum[i * stride + j] = bias ? before + static_cast<float>(bias[j]) : before;
      }
    }
  });
}

onednn::Bf16Matmul::Key key_of(onednn::Shape const& shape, Operand<bf16> const& a, Operand<bf16> const& b) {
  using Read = Operand<bf16>::Read;
  return {shape, a.stride, b.stride, a.read == Read::transposed, b.read == Read::transposed};
}

// sum (+)= a · b, for one slice of k.
void multiply(onednn::Shape const& shape, float* sum, Operand<float> const& a, Operand<float> const& b) {
  onednn::sgemm(shape, sum, a, b);
}

template <class T>
void multiply_as_fp32(onednn::Shape const& shape, float* sum, Operand<T> const& a, Operand<T> const& b) {
  onednn::sgemm(shape, sum, widened(a, shape.m, shape.k, operand_a), widened(b, shape.k, shape.n, operand_b));
}

// oneDNN multiplies fp16 from version 3 on alone, and on few processors.
void multiply(onednn::Shape const& shape, float* sum, Operand<fp16> const& a, Operand<fp16> const& b) {
  multiply_as_fp32(shape, sum, a, b);
}

void multiply(onednn::Shape const& shape, float* sum, Operand<bf16> const& a, Operand<bf16> const& b) {
  if (onednn::bf16_way() == onednn::Bf16Way::as_fp32) {
    multiply_as_fp32(shape, sum, a, b);
  } else {
    onednn::Bf16Matmul const& matmul = onednn::bf16_matmul(key_of(shape, a, b));
    matmul.run(sum, a.data, b.data, library.floats(matmul.scratch_floats()));
  }
}

template <class T, class R>
bool starts_filled(Product<T, R> const& product) {
  return product.into == Into::accumulate || product.bias != nullptr || product.grid.k.length == 0;
}

// Rows of a tile's sums: in c itself where that is fp32, else in a copy.
template <class T, class R>
std::int64_t sum_stride(Product<T, R> const& product, Tile const& tile) {
  return std::is_same_v<R, float> ? product.c_stride : padded(tile.n);
}

// body(shape, a, b) for the slices of k in order.
template <class T, class R, class Body>
void for_each_slice(Product<T, R> const& product, Tile const& tile, Body const& body) {
  Cut const& k = product.grid.k;
  for (std::int64_t slice = 0; slice < k.parts(); ++slice) {
    Into const into = slice > 0 || starts_filled(product) ? Into::accumulate : Into::overwrite;
    body(onednn::Shape{tile.m, tile.n, k.size(slice), sum_stride(product, tile), into},
         part_of(product.a, tile.row, k.begin(slice)), part_of(product.b, k.begin(slice), tile.column));
  }
}

template <class T, class R>
void compute(Product<T, R> const& product, Tile const& tile) {
  R* const c = product.c + tile.row * product.c_stride + tile.column;
  std::int64_t const stride = sum_stride(product, tile);
  float* sum = nullptr;
  bool has_old = false;
  if constexpr (std::is_same_v<R, float>) {
    sum = c;
    has_old = product.into == Into::accumulate && product.bias == nullptr;
  } else {
    sum = result.floats(tile.m * stride);
  }
  if (starts_filled(product) && !has_old) fill(sum, stride, product, tile);
  for_each_slice(product, tile, [&](onednn::Shape const& shape, Operand<T> const& a, Operand<T> const& b) {
    multiply(shape, sum, a, b);
  });
  if constexpr (!std::is_same_v<R, float>) narrow(c, product.c_stride, sum, stride, tile.m, tile.n);
}

// Compiles what the tiles are about to ask for, while there is one thread: the tiles at the edges have all the shapes.
template <class T, class R>
void compile_ahead(Product<T, R> const& product) {
  if constexpr (std::is_same_v<T, bf16>) {
    if (onednn::bf16_way() == onednn::Bf16Way::as_fp32) return;
    onednn::forget_old();
    std::int64_t const rows = product.grid.m.parts();
    std::int64_t const all = product.grid.tiles();
    for (std::int64_t const index : {std::int64_t{0}, rows - 1, all - rows, all - 1}) {
      for_each_slice(product, tile_at(product.grid, index),
                     [](auto const& shape, auto const& a, auto const& b) { onednn::bf16_matmul(key_of(shape, a, b)); });
    }
  }
}

// The first error of any thread; exceptions must not leave a parallel region.
class FirstError {
public:
  void keep_current() {
    std::lock_guard const lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

} // namespace

template <class T, class R>
void gemm(Lane const& lane, std::int64_t m, std::int64_t n, std::int64_t k, R* c, std::int64_t c_stride, Operand<T> a,
          Operand<T> b, T const* bias, Into into) {
  if (m == 0 || n == 0) return;
  GemmWorkspace::of(lane); // asked for, and not used: what its own lane lacks must show on every build
  Product<T, R> const product{{m, n, k}, c, c_stride, a, b, bias, into};
  auto const multiply_all = [product](Lane::Exec const&) {
    compile_ahead(product); // here, as the lane may come to it when others have been compiled and old ones forgotten
    FirstError error;
    launch(HostLane(), "kozero::gemm", DynamicRange{product.grid.tiles()}, [&](std::int64_t tile) {
      try {
        compute(product, tile_at(product.grid, tile));
      } catch (...) {
        error.keep_current();
      }
    });
    error.rethrow();
  };
  enqueue(lane, "kozero::gemm", {touched(a, m, k), touched(b, k, n)}, {touched(c, c_stride, m, n)}, multiply_all);
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

std::string gemm_backend() { return onednn::description(); }

} // namespace kozero
