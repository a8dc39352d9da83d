#pragma once
#include "core/lane.hpp"
#include "core/views.hpp"

namespace kozero {

/// sums [B] of each window's losses [N], N = B·T, in double: the tree of neighbours over the window's T rows, as
/// AlignedSum<1> of T leaves adds. The same bits on host and accelerator.
void window_sums(Lane const& lane, Vec<double> sums, ConstVec<float> losses);

} // namespace kozero
