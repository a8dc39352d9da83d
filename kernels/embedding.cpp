#include "kernels/embedding.hpp"

#include "core/error.hpp"
#include "kernels/row_reduce.hpp"

namespace kozero {

namespace {

// Columns that a team takes. Few ids or positions still make work for many teams.
constexpr std::int64_t column_chunk = 256;

std::int64_t column_chunks(std::int64_t columns) { return (columns + column_chunk - 1) / column_chunk; }

/// The columns of chunk `chunk` of row `row` of `sum` += those of the rows source(i), i = 0 … n-1, of dx, one after
/// another.
template <class T, class Source>
KOKKOS_FORCEINLINE_FUNCTION void add_rows(RowTeam const& team, Mat<float> const& sum, std::int64_t row,
                                          Mat<T const> const& dx, Packs packs, std::int64_t chunk, std::int64_t n,
                                          Source const& source) {
  std::int64_t const column = chunk * column_chunk;
  std::int64_t const left = cols(dx) - column;
  std::int64_t const count = left < column_chunk ? left : column_chunk;
#if KOZERO_ON_HOST
  static_cast<void>(packs);
  float* const to = &sum(row, column);
  for (std::int64_t i = 0; i < n; ++i) {
    T const* const from = &dx(source(i), column);
    row_loop(team, count, [=](std::int64_t c) { to[c] += static_cast<float>(from[c]); });
  }
#else
  pack_loop<pack_size<T>>(team, count, packs, [&](auto at) {
    at.begin += column;
    auto total = load(sum, row, at);
    for (std::int64_t i = 0; i < n; ++i) {
      total = map([](float a, float b) { return a + b; }, total, load(dx, source(i), at));
    }
    store(sum, row, at, total);
  });
#endif
}

} // namespace

template <class T>
void embedding_forward(Lane const& lane, Mat<T> x, Vec<std::int32_t const> tokens, ConstMat<T> wte, ConstMat<T> wpe) {
  KOZERO_ASSERT(rows(x) == rows(tokens) && cols(x) == cols(wte) && cols(x) == cols(wpe));
  std::int64_t const context = rows(wpe);
  std::int64_t const width = cols(x);
  KOZERO_ASSERT(rows(x) == 0 || rows(x) % context == 0);
  constexpr int k = pack_size<T>;
  Packs const packs = packs_of<k>(x, wte, wpe);
  for_each_row(
      lane, "kozero::embedding::forward", rows(x), KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        std::int64_t const token = tokens(row);
        std::int64_t const place = row % context;
        pack_loop<k>(team, width, packs, [&](auto at) {
          store(x, row, at, map([](float a, float b) { return a + b; }, load(wte, token, at), load(wpe, place, at)));
        });
      });
}

template <class T>
void embedding_backward(Lane const& lane, Mat<float> dwte, Mat<float> dwpe, Mat<T const> dx,
                        Vec<std::int32_t const> tokens, TokenGroups const& groups) {
  KOZERO_ASSERT(rows(dx) == rows(tokens) && rows(groups.positions) == rows(tokens));
  KOZERO_ASSERT(cols(dx) == cols(dwte) && cols(dx) == cols(dwpe));
  std::int64_t const n = rows(dx);
  if (n == 0) return;
  std::int64_t const context = rows(dwpe);
  KOZERO_ASSERT(n % context == 0);
  std::int64_t const windows = n / context;
  std::int64_t const chunks = column_chunks(cols(dx));
  Packs const packs = packs_of<pack_size<T>>(dx, dwte, dwpe);
  auto const starts = groups.starts;
  auto const positions = groups.positions;
  for_each_row(
      lane, "kozero::embedding::backward::tokens", (rows(starts) - 1) * chunks,
      KOKKOS_LAMBDA(RowTeam const& team, std::int64_t index) {
        std::int64_t const group = index / chunks;
        std::int64_t const begin = starts(group);
        add_rows(team, dwte, tokens(positions(begin)), dx, packs, index % chunks, starts(group + 1) - begin,
                 [&](std::int64_t i) { return positions(begin + i); });
      });
  for_each_row(
      lane, "kozero::embedding::backward::positions", context * chunks,
      KOKKOS_LAMBDA(RowTeam const& team, std::int64_t index) {
        std::int64_t const place = index / chunks;
        add_rows(team, dwpe, place, dx, packs, index % chunks, windows,
                 [&](std::int64_t window) { return window * context + place; });
      });
}

template void embedding_forward(Lane const&, Mat<float>, Vec<std::int32_t const>, ConstMat<float>, ConstMat<float>);
template void embedding_forward(Lane const&, Mat<bf16>, Vec<std::int32_t const>, ConstMat<bf16>, ConstMat<bf16>);
template void embedding_forward(Lane const&, Mat<fp16>, Vec<std::int32_t const>, ConstMat<fp16>, ConstMat<fp16>);
template void embedding_backward(Lane const&, Mat<float>, Mat<float>, Mat<float const>, Vec<std::int32_t const>,
                                 TokenGroups const&);
template void embedding_backward(Lane const&, Mat<float>, Mat<float>, Mat<bf16 const>, Vec<std::int32_t const>,
                                 TokenGroups const&);
template void embedding_backward(Lane const&, Mat<float>, Mat<float>, Mat<fp16 const>, Vec<std::int32_t const>,
                                 TokenGroups const&);

} // namespace kozero
