#include "kernels/layernorm.hpp"

#include "kernels/column_sum.hpp"
#include "kernels/row_reduce.hpp"

namespace kozero {

namespace {

/// What a norm's forward pass makes of its input.
template <class T>
struct Norm {
  static constexpr int k = pack_size<T>;
  Mat<T> y;
  Vec<float> mean, rstd;
  Vec<T const> weight, bias;
  Packs packs;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(RowTeam const& team, std::int64_t row, Mat<T const> const& x) const {
    std::int64_t const width = cols(y);
    float const count = static_cast<float>(width);
    float const m = pack_sum<k>(team, width, packs, [&](auto at) { return load(x, row, at); }) / count;
    float const variance = pack_sum<k>(team, width, packs,
                                       [&](auto at) {
                                         return map(
                                             [=](float value) {
                                               float const d = value - m;
                                               return d * d;
                                             },
                                             load(x, row, at));
                                       }) /
                           count;
    float const r = 1.0f / math::sqrt(variance + 1e-5f);
    pack_loop<k>(team, width, packs, [&](auto at) {
      store(y, row, at,
            map([=](float value, float w, float b) { return math::fma((value - m) * r, w, b); }, load(x, row, at),
                load(weight, at), load(bias, at)));
    });
    row_once(team, [&] {
      mean(row) = m;
      rstd(row) = r;
    });
  }
};

/// dy · x̂, whose sums over rows are the gradient of the weight.
template <class T>
struct WeightTerm {
  Mat<T const> dy, x;
  Vec<float const> mean, rstd;
  template <int k>
  KOKKOS_FORCEINLINE_FUNCTION Floats<k> operator()(std::int64_t row, Place<k> at) const {
    float const m = mean(row);
    float const r = rstd(row);
    return map([=](float d, float value) { return d * ((value - m) * r); }, load(dy, row, at), load(x, row, at));
  }
};

} // namespace

template <class T>
void layernorm_forward(Lane const& lane, Mat<T> y, Vec<float> mean, Vec<float> rstd, ConstMat<T> x, ConstVec<T> weight,
                       ConstVec<T> bias) {
  Norm<T> const norm{y, mean, rstd, weight, bias, packs_of<Norm<T>::k>(y, x, weight, bias)};
  for_each_row(
      lane, "kozero::layernorm::forward", rows(x),
      KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) { norm(team, row, x); });
}

template <class T>
void residual_layernorm_forward(Lane const& lane, Mat<T> y, Vec<float> mean, Vec<float> rstd, Mat<T> x, ConstMat<T> r,
                                ConstVec<T> weight, ConstVec<T> bias) {
  constexpr int k = Norm<T>::k;
  Norm<T> const norm{y, mean, rstd, weight, bias, packs_of<k>(y, x, r, weight, bias)};
  for_each_row(
      lane, "kozero::layernorm::residual_forward", rows(x), KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        pack_loop<k>(team, cols(x), norm.packs, [&](auto at) {
          store(x, row, at, map([](float a, float b) { return a + b; }, load(x, row, at), load(r, row, at)));
        });
        norm(team, row, x);
      });
}

// With x̂ = (x - mean) · rstd and g = dy · weight:  dx = rstd · (g - Σ g / C - x̂ · Σ g x̂ / C).
template <class T>
void layernorm_backward(Lane const& lane, Mat<T> dx, Vec<float> dweight, Vec<float> dbias, Vec<float> scratch,
                        ConstMat<T> dy, ConstMat<T> x, Vec<float const> mean, Vec<float const> rstd,
                        ConstVec<T> weight) {
  constexpr int k = pack_size<T>;
  std::int64_t const n = rows(x);
  std::int64_t const width = cols(x);
  Packs const packs = packs_of<k>(dx, dy, x, weight);
  for_each_row(
      lane, "kozero::layernorm::backward", n, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        float const m = mean(row);
        float const r = rstd(row);
        auto const gradient = [&](auto at) {
          return map([](float d, float w) { return d * w; }, load(dy, row, at), load(weight, at));
        };
        auto const normal = [&](auto at) {
          return map([=](float value) { return (value - m) * r; }, load(x, row, at));
        };
        SumPair const sums = pack_sum2<k>(team, width, packs, gradient, [&](auto at) {
          return map([](float g, float normed) { return g * normed; }, gradient(at), normal(at));
        });
        float const of_gradient = sums.first / static_cast<float>(width);
        float const of_product = sums.second / static_cast<float>(width);
        pack_loop<k>(team, width, packs, [&](auto at) {
          store(dx, row, at,
                map([=](float d, float g,
                        float normed) { return math::fma(r, math::fma(-normed, of_product, g - of_gradient), d); },
                    load(dx, row, at), gradient(at), normal(at)));
        });
      });
  add_column_sums<k>(lane, "kozero::layernorm::backward::weight", dweight, scratch, n, packs,
                     WeightTerm<T>{dy, x, mean, rstd});
  add_column_sums<k>(lane, "kozero::layernorm::backward::bias", dbias, scratch, n, packs, Elements<T>{dy});
}

#define KOZERO_INSTANTIATE(T)                                                                                          \
  template void layernorm_forward(Lane const&, Mat<T>, Vec<float>, Vec<float>, ConstMat<T>, ConstVec<T>, ConstVec<T>); \
  template void residual_layernorm_forward(Lane const&, Mat<T>, Vec<float>, Vec<float>, Mat<T>, ConstMat<T>,           \
                                           ConstVec<T>, ConstVec<T>);                                                  \
  template void layernorm_backward(Lane const&, Mat<T>, Vec<float>, Vec<float>, Vec<float>, ConstMat<T>, ConstMat<T>,  \
                                   Vec<float const>, Vec<float const>, ConstVec<T>);

KOZERO_INSTANTIATE(float)
KOZERO_INSTANTIATE(bf16)
KOZERO_INSTANTIATE(fp16)

} // namespace kozero
