#pragma once
// Layer normalisation over the last dimension (Ba, Kiros, Hinton, 2016) with eps 1e-5.

#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// y [N,C] = (x [N,C] - mean) · rstd · weight [C] + bias [C]; mean [N] and rstd [N] = 1/√(variance + 1e-5) are kept.
template <class T>
void layernorm_forward(Lane const& lane, Mat<T> y, Vec<float> mean, Vec<float> rstd, ConstMat<T> x, ConstVec<T> weight,
                       ConstVec<T> bias);

/// x [N,C] = x + r [N,C], and the norm of that, as above. The bits are those of add() and layernorm_forward().
template <class T>
void residual_layernorm_forward(Lane const& lane, Mat<T> y, Vec<float> mean, Vec<float> rstd, Mat<T> x, ConstMat<T> r,
                                ConstVec<T> weight, ConstVec<T> bias);

/// dx [N,C] += the gradient through the norm of dy [N,C]; dweight [C] and dbias [C] += sums over rows, in a fixed
/// order. `scratch`: column_sum_scratch(N, C) or more.
template <class T>
void layernorm_backward(Lane const& lane, Mat<T> dx, Vec<float> dweight, Vec<float> dbias, Vec<float> scratch,
                        ConstMat<T> dy, ConstMat<T> x, Vec<float const> mean, Vec<float const> rstd,
                        ConstVec<T> weight);

} // namespace kozero
