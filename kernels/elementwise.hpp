#pragma once
#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// y = a + b, any length; y may be a or b.
template <class T>
void add(Lane const& lane, Vec<T> y, ConstVec<T> a, ConstVec<T> b);

/// Σ x in double, of a shape that depends on the number of elements alone (kernels/chunk_sums.hpp). Waits for the lane.
double sum(Lane const& lane, Vec<float const> x);

} // namespace kozero
