#pragma once
// What memory gives: three arrays of floats, read and written (after McCalpin's STREAM, with nothing written that was
// not read, so that every byte is counted).

#include "core/lane.hpp"

#include <cstdint>

namespace kozero {

/// Bytes that an element moves.
inline constexpr std::int64_t triad_bytes = 6 * sizeof(float);

/// a ← a + s·b, b ← b + s·c, c ← c + s·a of before, `count` elements each, with s = 0: the numbers stay.
void run_triad(HostLane const& lane, float* a, float* b, float* c, std::int64_t count);
void run_triad(Lane const& lane, float* a, float* b, float* c, std::int64_t count);
void run_triad_by_this_thread(float* a, float* b, float* c, std::int64_t count);

} // namespace kozero
