#pragma once
#include "core/dtype.hpp"

#include <cstdint>
#include <span>

namespace kozero {

/// The order of every sum over ranks: out[i] = ((p0[i] + p1[i]) + (p2[i] + p3[i])) + …. Neighbours are added in pairs,
/// then pairs of pairs; a last one without a neighbour goes up a level as it is. bf16 and fp16 are added in fp32
/// and rounded once.
///
/// `pieces` has at least one array, one a rank, each with `count` elements in host memory; `out` may be one of them.
/// Runs on the host's threads, which does not change bits.
void tree_sum(DType type, std::span<void const* const> pieces, std::int64_t count, void* out);

} // namespace kozero
