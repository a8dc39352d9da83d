#pragma once
// y = x · Wᵀ + b, with W [O,I] stored as in torch.nn.Linear.

#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// y [N,O] = x [N,I] · w [O,I]ᵀ + bias [O]. An empty `bias` adds nothing.
template <class T>
void linear_forward(Lane const& lane, Mat<T> y, ConstMat<T> x, ConstMat<T> w, ConstVec<T> bias);

/// dx [N,I] = dy [N,O] · w [O,I], dw [O,I] += dyᵀ · x [N,I], dbias [O] += Σ_rows dy in a fixed order.
template <class T>
void linear_backward(Lane const& lane, Mat<T> dx, Mat<float> dw, Vec<float> dbias, ConstMat<T> dy, ConstMat<T> x,
                     ConstMat<T> w);

} // namespace kozero
