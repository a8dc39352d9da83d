#pragma once
#include "core/half.hpp"
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// y = a + b, any length; y may be a or b.
template <class T>
void add(Lane const& lane, Vec<T> y, ConstVec<T> a, ConstVec<T> b);

/// y = x, converted; float and bf16.
template <class To, class From>
void convert(Lane const& lane, Vec<To> y, Vec<From const> x);

/// Σ x and Σ x² in double: chunks of 4096 elements, then a binary tree over the chunks, so that the bits depend on the
/// values and their number alone, not on threads. They wait for the lane, and allocate a double a chunk meanwhile.
double sum(Lane const& lane, Vec<float const> x);
double sum_of_squares(Lane const& lane, Vec<float const> x);

/// The index of the first Inf or NaN, or the length. Waits for the lane.
std::int64_t first_non_finite(Lane const& lane, Vec<float const> x);

} // namespace kozero
