#include "kernels/layernorm.hpp"

#include "kernels/column_sum.hpp"
#include "kernels/row_reduce.hpp"

namespace kozero {

template <class T>
void layernorm_forward(Lane const& lane, Mat<T> y, Vec<float> mean, Vec<float> rstd, ConstMat<T> x, ConstVec<T> weight,
                       ConstVec<T> bias) {
  std::int64_t const width = cols(x);
  for_each_row(
      lane, "kozero::layernorm::forward", rows(x), KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        float const count = static_cast<float>(width);
        float const m = row_sum(team, width, [&](std::int64_t c) { return static_cast<float>(x(row, c)); }) / count;
        float const variance = row_sum(team, width,
                                       [&](std::int64_t c) {
                                         float const d = static_cast<float>(x(row, c)) - m;
                                         return d * d;
                                       }) /
                               count;
        float const r = 1.0f / math::sqrt(variance + 1e-5f);
        row_loop(team, width, [&](std::int64_t c) {
          float const normal = (static_cast<float>(x(row, c)) - m) * r;
          y(row, c) = static_cast<T>(math::fma(normal, static_cast<float>(weight(c)), static_cast<float>(bias(c))));
        });
        row_once(team, [&] {
          mean(row) = m;
          rstd(row) = r;
        });
      });
}

// With x̂ = (x - mean) · rstd and g = dy · weight:  dx = rstd · (g - Σ g / C - x̂ · Σ g x̂ / C).
template <class T>
void layernorm_backward(Lane const& lane, Mat<T> dx, Vec<float> dweight, Vec<float> dbias, ConstMat<T> dy,
                        ConstMat<T> x, Vec<float const> mean, Vec<float const> rstd, ConstVec<T> weight) {
  std::int64_t const n = rows(x);
  std::int64_t const width = cols(x);
  for_each_row(
      lane, "kozero::layernorm::backward", n, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t row) {
        float const m = mean(row);
        float const r = rstd(row);
        auto const gradient = [&](std::int64_t c) {
          return static_cast<float>(dy(row, c)) * static_cast<float>(weight(c));
        };
        auto const normal = [&](std::int64_t c) { return (static_cast<float>(x(row, c)) - m) * r; };
        SumPair const sums = row_sum2(team, width, gradient, [&](std::int64_t c) { return gradient(c) * normal(c); });
        float const of_gradient = sums.first / static_cast<float>(width);
        float const of_product = sums.second / static_cast<float>(width);
        row_loop(team, width, [&](std::int64_t c) {
          float const inner = math::fma(-normal(c), of_product, gradient(c) - of_gradient);
          dx(row, c) = static_cast<T>(math::fma(r, inner, static_cast<float>(dx(row, c))));
        });
      });
  add_column_sums(
      lane, "kozero::layernorm::backward::weight", dweight, n, KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) {
        float const normal = (static_cast<float>(x(row, c)) - mean(row)) * rstd(row);
        return static_cast<float>(dy(row, c)) * normal;
      });
  add_column_sums(
      lane, "kozero::layernorm::backward::bias", dbias, n,
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t c) { return static_cast<float>(dy(row, c)); });
}

template void layernorm_forward(Lane const&, Mat<float>, Vec<float>, Vec<float>, ConstMat<float>, ConstVec<float>,
                                ConstVec<float>);
template void layernorm_forward(Lane const&, Mat<bf16>, Vec<float>, Vec<float>, ConstMat<bf16>, ConstVec<bf16>,
                                ConstVec<bf16>);
template void layernorm_forward(Lane const&, Mat<fp16>, Vec<float>, Vec<float>, ConstMat<fp16>, ConstVec<fp16>,
                                ConstVec<fp16>);
template void layernorm_backward(Lane const&, Mat<float>, Vec<float>, Vec<float>, ConstMat<float>, ConstMat<float>,
                                 Vec<float const>, Vec<float const>, ConstVec<float>);
template void layernorm_backward(Lane const&, Mat<bf16>, Vec<float>, Vec<float>, ConstMat<bf16>, ConstMat<bf16>,
                                 Vec<float const>, Vec<float const>, ConstVec<bf16>);
template void layernorm_backward(Lane const&, Mat<fp16>, Vec<float>, Vec<float>, ConstMat<fp16>, ConstMat<fp16>,
                                 Vec<float const>, Vec<float const>, ConstVec<fp16>);

} // namespace kozero
