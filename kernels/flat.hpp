#pragma once
// Flat arrays in the memory of the lane that works on them, device or host: what a rank's shards are made of.
// T is float or one of the 16-bit types.

#include "core/dtype.hpp"
#include "core/half.hpp"
#include "core/lane.hpp"

#include <cstdint>
#include <vector>

namespace kozero {

/// y[i] ← x[i], rounded where To is the shorter type; i = 0 … n-1.
template <class Exec, class To, class From>
void convert(BasicLane<Exec> const& lane, To* y, From const* x, std::int64_t n);

/// y[i] ← y[i] + x[i], added in fp32 and rounded once.
template <class Exec, class To, class From>
void accumulate(BasicLane<Exec> const& lane, To* y, From const* x, std::int64_t n);

/// The index of the first Inf or NaN, or n. Waits for the lane.
template <class Exec, class T>
std::int64_t first_non_finite(BasicLane<Exec> const& lane, T const* x, std::int64_t n);

} // namespace kozero
