#pragma once
// GELU in its tanh form (Hendrycks and Gimpel, 2016): y = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).

#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// y = gelu(x), any length.
template <class T>
void gelu_forward(Lane const& lane, Vec<T> y, ConstVec<T> x);

/// d in: the gradient of y; out: the gradient of x.
template <class T>
void gelu_backward(Lane const& lane, Vec<T> d, ConstVec<T> x);

} // namespace kozero
