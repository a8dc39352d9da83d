#pragma once
#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// y = a + b, any length; y may be a or b.
template <class T>
void add(Lane const& lane, Vec<T> y, ConstVec<T> a, ConstVec<T> b);

} // namespace kozero
