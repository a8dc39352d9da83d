#pragma once
// Flat arrays in the memory of the lane that works on them, device or host: what a rank's shards are made of.
// T is float or one of the 16-bit types.

#include "core/half.hpp"
#include "core/lane.hpp"

#include <cstdint>
#include <vector>

namespace kozero {

/// y[i] ← x[i], rounded where To is the shorter type; i = 0 … n-1.
template <class AnyLane, class To, class From>
void convert(AnyLane const& lane, To* y, From const* x, std::int64_t n);

/// y[i] ← y[i] + x[i], added in fp32 and rounded once.
template <class AnyLane, class To, class From>
void accumulate(AnyLane const& lane, To* y, From const* x, std::int64_t n);

/// *first ← the least of *first and offset + i over all i = 0 … n-1 for which x[i] is Inf or NaN. `first` is in the
/// memory of the lane.
template <class AnyLane, class T>
void find_non_finite(AnyLane const& lane, std::int64_t* first, T const* x, std::int64_t n, std::int64_t offset);

} // namespace kozero
