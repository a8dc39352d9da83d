#pragma once
#include "config/config.hpp"

#include <cstdint>

namespace kozero {

/// The learning rate of the update that comes after `updates_applied` others, of a run of `total_updates`.
///
/// With the peak lr, w = warmup, n = total_updates and i = updates_applied:
///
///   i < w     lr·(i+1)/w: the first update of a warm-up gets lr/w, its last (i = w-1) the peak
///   then      the peak, until the descent begins; with w = 0 the first update gets the peak
///   descent   from the peak at update s to exactly min_lr at the last update, n-1, with x = (i-s)/(n-1-s):
///             linear   lr + (min_lr-lr)·x                          s = max(w-1, 0)
///             cosine   lr + (min_lr-lr)·(1-cos πx)/2               s = max(w-1, 0)    (SGDR, eq. 5)
///             wsd      as linear                                   s = the same or n-1-d if that is later, where
///                      d = decay·n rounded, at least 1: the updates of the descent; decay = 0: no descent
///   i ≥ n     min_lr: a run that goes on past its end
///   constant  never descends, neither at the end nor past it
///
/// A descent needs room: when n-1 ≤ s (w ≥ n, or w = 0 and n = 1) the run ends in its warm-up or at the peak.
/// Never above the peak, and not below min_lr except in the warm-up. The schedule must be valid: 0 ≤ min_lr ≤ lr,
/// w ≥ 0, 0 ≤ decay ≤ 1.
double learning_rate(OptimizerConfig const& optimizer, ScheduleConfig const& schedule, std::int64_t total_updates,
                     std::int64_t updates_applied);

} // namespace kozero
