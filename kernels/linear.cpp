#include "kernels/linear.hpp"

#include "core/error.hpp"
#include "kernels/column_sum.hpp"
#include "kernels/gemm.hpp"

namespace kozero {

template <class T>
void linear_forward(Lane const& lane, Mat<T> y, ConstMat<T> x, ConstMat<T> w, ConstVec<T> bias, WeightOrder order) {
  bool const out_in = order == WeightOrder::out_in;
  KOZERO_ASSERT(rows(y) == rows(x) && cols(y) == (out_in ? rows(w) : cols(w)) &&
                cols(x) == (out_in ? cols(w) : rows(w)));
  KOZERO_ASSERT(rows(bias) == 0 || rows(bias) == cols(y));
  T const* const added = rows(bias) == 0 ? nullptr : bias.data();
  gemm<T, T>(lane, rows(y), cols(y), cols(x), y.data(), y.stride(), plain(x), out_in ? transposed(w) : plain(w), added,
             Into::overwrite);
}

template <class T>
void linear_backward(Lane const& lane, Mat<T> dx, Mat<float> dw, Vec<float> dbias, Vec<float> scratch, ConstMat<T> dy,
                     ConstMat<T> x, ConstMat<T> w, WeightOrder order) {
  bool const out_in = order == WeightOrder::out_in;
  KOZERO_ASSERT(rows(dx) == rows(dy) && cols(dx) == cols(x) && rows(x) == rows(dy));
  KOZERO_ASSERT(rows(dw) == rows(w) && cols(dw) == cols(w));
  KOZERO_ASSERT(cols(dy) == (out_in ? rows(w) : cols(w)) && cols(x) == (out_in ? cols(w) : rows(w)));
  KOZERO_ASSERT(rows(dbias) == 0 || rows(dbias) == cols(dy));
  ConstMat<T> const& left = out_in ? dy : x;
  ConstMat<T> const& right = out_in ? x : dy;
  gemm<T, T>(lane, rows(dx), cols(dx), cols(dy), dx.data(), dx.stride(), plain(dy), out_in ? plain(w) : transposed(w),
             nullptr, Into::overwrite);
  gemm<T, float>(lane, rows(dw), cols(dw), rows(dy), dw.data(), dw.stride(), transposed(left), plain(right), nullptr,
                 Into::accumulate);
  constexpr int k = pack_size<T>;
  add_column_sums<k>(lane, "kozero::linear::backward::bias", dbias, scratch, rows(dy), packs_of<k>(dy),
                     Elements<T>{dy});
}

template void linear_forward(Lane const&, Mat<float>, ConstMat<float>, ConstMat<float>, ConstVec<float>, WeightOrder);
template void linear_forward(Lane const&, Mat<bf16>, ConstMat<bf16>, ConstMat<bf16>, ConstVec<bf16>, WeightOrder);
template void linear_forward(Lane const&, Mat<fp16>, ConstMat<fp16>, ConstMat<fp16>, ConstVec<fp16>, WeightOrder);
template void linear_backward(Lane const&, Mat<float>, Mat<float>, Vec<float>, Vec<float>, ConstMat<float>,
                              ConstMat<float>, ConstMat<float>, WeightOrder);
template void linear_backward(Lane const&, Mat<bf16>, Mat<float>, Vec<float>, Vec<float>, ConstMat<bf16>,
                              ConstMat<bf16>, ConstMat<bf16>, WeightOrder);
template void linear_backward(Lane const&, Mat<fp16>, Mat<float>, Vec<float>, Vec<float>, ConstMat<fp16>,
                              ConstMat<fp16>, ConstMat<fp16>, WeightOrder);

} // namespace kozero
