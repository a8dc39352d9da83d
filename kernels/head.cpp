#include "kernels/head.hpp"

#include "core/error.hpp"
#include "kernels/gemm.hpp"
#include "kernels/math.hpp"
#include "kernels/row_reduce.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>

namespace kozero {

namespace {

// Terms that are summed in fp32, 32 to each partial sum, before they join the sum of a row in fp64.
constexpr std::int64_t exact_sum_chunk = 2048;

constexpr int k = pack_size<float>;

/// Σ term(Place), accurate to fp32 for any n.
template <class Term>
KOKKOS_FORCEINLINE_FUNCTION double exact_row_sum(RowTeam const& team, std::int64_t n, Packs packs, Term const& term) {
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += exact_sum_chunk) {
    std::int64_t const left = n - begin;
    total += pack_sum<k>(team, left < exact_sum_chunk ? left : exact_sum_chunk, packs, [&](auto at) {
      at.begin += begin;
      return term(at);
    });
  }
  return total;
}

/// losses [R] of logits [R,Vp], of which the first `vocabulary` columns count.
void losses_of(Lane const& lane, Vec<float> losses, Mat<float> logits, std::int64_t vocabulary,
               Vec<std::int32_t const> targets) {
  Packs const packs = packs_of<k>(logits);
  for_each_row(
      lane, "kozero::head::loss", rows(losses), KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        std::int32_t const target = targets(row);
        float loss = 0;
        if (target >= 0) {
          float const top = pack_max<k>(team, vocabulary, packs, [&](auto at) { return load(logits, row, at); });
          double const sum = exact_row_sum(team, vocabulary, packs, [&](auto at) {
            return map([=](float logit) { return fast_exp(logit - top); }, load(logits, row, at));
          });
          loss = static_cast<float>(math::log(sum) -
                                    (static_cast<double>(logits(row, target)) - static_cast<double>(top)));
        }
        row_once(team, [&] { losses(row) = loss; });
      });
}

/// losses [R] as above, and dlogits [R,Vp] = scale · (softmax - [column is target]). The logits become their
/// exponentials on the way, which are computed once.
template <class T>
void losses_and_gradients_of(Lane const& lane, Vec<float> losses, Mat<T> dlogits, Mat<float> logits,
                             std::int64_t vocabulary, Vec<std::int32_t const> targets, float scale) {
  Packs const packs = packs_of<k>(logits, dlogits);
  for_each_row(
      lane, "kozero::head::loss_and_gradient", rows(losses), KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        std::int32_t const target = targets(row);
        float loss = 0;
        if (target < 0) {
          row_loop(team, vocabulary, [&](std::int64_t i) { dlogits(row, i) = static_cast<T>(0.0f); });
        } else {
          float const at_target = logits(row, target);
          float const top = pack_max<k>(team, vocabulary, packs, [&](auto at) { return load(logits, row, at); });
          double const sum = exact_row_sum(team, vocabulary, packs, [&](auto at) {
            auto const e = map([=](float logit) { return fast_exp(logit - top); }, load(logits, row, at));
            store(logits, row, at, e);
            return e;
          });
          loss = static_cast<float>(math::log(sum) - (static_cast<double>(at_target) - static_cast<double>(top)));
          float const factor = static_cast<float>(scale / sum);
          float const of_target = math::fma(factor, fast_exp(at_target - top), -scale);
          pack_loop<k>(team, vocabulary, packs, [&](auto at) {
            store(dlogits, row, at, map([=](float e) { return factor * e; }, load(logits, row, at)));
          });
          row_once(team, [&] { dlogits(row, target) = static_cast<T>(of_target); });
        }
        row_once(team, [&] { losses(row) = loss; });
      });
}

/// body(begin, end) for the chunks of n rows that the scratch holds.
template <class T, class Body>
void for_each_chunk(HeadScratch<T> const& scratch, std::int64_t n, std::int64_t vocabulary, Body const& body) {
  std::int64_t const chunk = rows(scratch.logits);
  KOZERO_ASSERT((chunk > 0 || n == 0) && cols(scratch.logits) == padded_vocabulary(vocabulary));
  for (std::int64_t begin = 0; begin < n; begin += chunk) body(begin, std::min(n, begin + chunk));
}

} // namespace

std::int64_t head_chunk_rows(std::int64_t n, std::int64_t vocabulary, HeadChunk const& chunk) {
  std::int64_t const width = std::max<std::int64_t>(padded_vocabulary(vocabulary), 1);
  std::int64_t const most = std::max(chunk.logits / width, chunk.rows);
  if (n <= most) return n;
  // Chunks of nearly the same size, of whole vectors.
  std::int64_t const chunks = (n + most - 1) / most;
  return ((n + chunks - 1) / chunks + 15) / 16 * 16;
}

template <class T>
void head_loss(Lane const& lane, Vec<float> losses, HeadScratch<T> const& scratch, ConstMat<T> x, ConstMat<T> w,
               Vec<std::int32_t const> targets) {
  KOZERO_ASSERT(rows(losses) == rows(x) && rows(targets) == rows(x));
  for_each_chunk(scratch, rows(x), rows(w), [&](std::int64_t begin, std::int64_t end) {
    Mat<float> const logits = scratch.logits.part(0, end - begin);
    head_logits<T>(lane, logits, x.part(begin, end), w);
    losses_of(lane, losses.part(begin, end), logits, rows(w), targets.part(begin, end));
  });
}

template <class T>
void head_loss_and_gradient(Lane const& lane, Vec<float> losses, Mat<T> dx, Mat<float> dw,
                            HeadScratch<T> const& scratch, ConstMat<T> x, ConstMat<T> w,
                            Vec<std::int32_t const> targets, float scale) {
  KOZERO_ASSERT(rows(losses) == rows(x) && rows(targets) == rows(x) && rows(dx) == rows(x) && cols(dx) == cols(x));
  KOZERO_ASSERT(rows(dw) == rows(w) && cols(dw) == cols(w) && cols(x) == cols(w));
  std::int64_t const vocabulary = rows(w);
  std::int64_t const width = cols(w);
  for_each_chunk(scratch, rows(x), vocabulary, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t const n = end - begin;
    Mat<float> const logits = scratch.logits.part(0, n);
    Mat<T> const dlogits = scratch.dlogits.part(0, n);
    Mat<T const> const x_rows = x.part(begin, end);
    Mat<T> const dx_rows = dx.part(begin, end);
    Operand<T> const gradient{dlogits.data(), dlogits.stride()};

    head_logits<T>(lane, logits, x_rows, w);
    losses_and_gradients_of(lane, losses.part(begin, end), dlogits, logits, vocabulary, targets.part(begin, end),
                            scale);
    gemm<T, T>(lane, n, width, vocabulary, dx_rows.data(), dx_rows.stride(), gradient, plain(w), nullptr,
               Into::overwrite);
    gemm<T, float>(lane, vocabulary, width, n, dw.data(), dw.stride(),
                   {gradient.data, gradient.stride, Operand<T>::Read::transposed}, plain(x_rows), nullptr,
                   Into::accumulate);
  });
}

template <class T>
void head_logits(Lane const& lane, Mat<float> logits, ConstMat<T> x, ConstMat<T> w) {
  KOZERO_ASSERT(rows(logits) == rows(x) && cols(logits) >= rows(w) && cols(x) == cols(w));
  gemm<T, float>(lane, rows(x), rows(w), cols(w), logits.data(), logits.stride(), plain(x), transposed(w), nullptr,
                 Into::overwrite);
}

template void head_loss(Lane const&, Vec<float>, HeadScratch<float> const&, ConstMat<float>, ConstMat<float>,
                        Vec<std::int32_t const>);
template void head_loss(Lane const&, Vec<float>, HeadScratch<bf16> const&, ConstMat<bf16>, ConstMat<bf16>,
                        Vec<std::int32_t const>);
template void head_loss(Lane const&, Vec<float>, HeadScratch<fp16> const&, ConstMat<fp16>, ConstMat<fp16>,
                        Vec<std::int32_t const>);
template void head_loss_and_gradient(Lane const&, Vec<float>, Mat<float>, Mat<float>, HeadScratch<float> const&,
                                     ConstMat<float>, ConstMat<float>, Vec<std::int32_t const>, float);
template void head_loss_and_gradient(Lane const&, Vec<float>, Mat<bf16>, Mat<float>, HeadScratch<bf16> const&,
                                     ConstMat<bf16>, ConstMat<bf16>, Vec<std::int32_t const>, float);
template void head_loss_and_gradient(Lane const&, Vec<float>, Mat<fp16>, Mat<float>, HeadScratch<fp16> const&,
                                     ConstMat<fp16>, ConstMat<fp16>, Vec<std::int32_t const>, float);
template void head_logits<float>(Lane const&, Mat<float>, ConstMat<float>, ConstMat<float>);
template void head_logits<bf16>(Lane const&, Mat<float>, ConstMat<bf16>, ConstMat<bf16>);
template void head_logits<fp16>(Lane const&, Mat<float>, ConstMat<fp16>, ConstMat<fp16>);

} // namespace kozero
