#pragma once
// y = x · W + b, with W stored either way.

#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// How a weight lies in memory: [O,I] as in torch.nn.Linear, or [I,O].
enum class WeightOrder { out_in, in_out };

/// y [N,O] = x [N,I] · W + bias [O]; `w` is [O,I] or [I,O]. An empty `bias` adds nothing.
template <class T>
void linear_forward(Lane const& lane, Mat<T> y, ConstMat<T> x, ConstMat<T> w, ConstVec<T> bias,
                    WeightOrder order = WeightOrder::out_in);

/// dx [N,I] = dy [N,O] · Wᵀ, dw += the gradient of W in the order of `w`, dyᵀ · x or xᵀ · dy, dbias [O] += Σ_rows dy in
/// a fixed order. `scratch`: column_sum_scratch(N, O) or more.
template <class T>
void linear_backward(Lane const& lane, Mat<T> dx, Mat<float> dw, Vec<float> dbias, Vec<float> scratch, ConstMat<T> dy,
                     ConstMat<T> x, ConstMat<T> w, WeightOrder order = WeightOrder::out_in);

} // namespace kozero
