#include "comm/tree_sum.hpp"

#include "core/host_simd.hpp"
#include "core/launch.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace kozero {

namespace {

template <class T>
using Sum = std::conditional_t<is_half<T>, float, T>;

// Elements that one thread sums at a time: every level of the tree keeps that many in the first-level cache.
constexpr std::int64_t tile = 512;

// The left half of a tree over n ranks holds the largest power of two below n: that is what pairing neighbours gives.
template <class T>
void sum_tile(void const* const* pieces, int n, std::int64_t begin, std::int64_t count, Sum<T>* out) {
  if (n == 1) {
    T const* const piece = static_cast<T const*>(pieces[0]) + begin;
    host_simd([=] {
      KOZERO_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Sum<T>>(piece[i]);
    });
    return;
  }
  int const left = static_cast<int>(std::bit_floor(static_cast<unsigned>(n - 1)));
  Sum<T> right[tile];
  sum_tile<T>(pieces, left, begin, count, out);
  sum_tile<T>(pieces + left, n - left, begin, count, right);
  Sum<T> const* const addend = right;
  host_simd([=] {
    KOZERO_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) out[i] = out[i] + addend[i];
  });
}

template <class T>
void sum_typed(std::span<void const* const> all, std::int64_t count, void* untyped_out) {
  void const* const* const pieces = all.data();
  int const n = static_cast<int>(all.size());
  T* out = static_cast<T*>(untyped_out);
  auto const sum_one = [=](std::int64_t t) {
    std::int64_t const begin = t * tile;
    std::int64_t const length = std::min(tile, count - begin);
    Sum<T> sums[tile]; // not straight into out, which may be one of the pieces
    sum_tile<T>(pieces, n, begin, length, sums);
    Sum<T> const* const from = sums;
    host_simd([=, to = out + begin] {
      KOZERO_INDEPENDENT
      for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<T>(from[i]);
    });
  };
  launch(HostLane(), "kozero::tree_sum", Range{(count + tile - 1) / tile}, sum_one);
}

} // namespace

void tree_sum(DType type, std::span<void const* const> pieces, std::int64_t count, void* out) {
  if (count == 0) return;
  switch (type) {
  case DType::f32: return sum_typed<float>(pieces, count, out);
  case DType::bf16: return sum_typed<bf16>(pieces, count, out);
  case DType::f16: return sum_typed<fp16>(pieces, count, out);
  case DType::f64: return sum_typed<double>(pieces, count, out);
  case DType::i64: return sum_typed<std::int64_t>(pieces, count, out);
  case DType::i32: return sum_typed<std::int32_t>(pieces, count, out);
  case DType::u8: break;
  }
  throw Error(
      fmt::format("arrays of type {} have no sum over ranks (a fault of kozero); please report it", name_of(type)));
}

} // namespace kozero
