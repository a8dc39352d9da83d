#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kozero {

namespace {

/// The update at which the descent begins, still at the peak. From `last` on there is no descent.
std::int64_t descent_start(ScheduleConfig const& schedule, std::int64_t total_updates) {
  std::int64_t const first_at_peak = std::max<std::int64_t>(schedule.warmup - 1, 0);
  if (schedule.kind != ScheduleKind::wsd) return first_at_peak;
  std::int64_t const last = total_updates - 1;
  if (schedule.decay == 0) return std::max(first_at_peak, last);
  auto const rounded = static_cast<std::int64_t>(std::llround(schedule.decay * static_cast<double>(total_updates)));
  return std::max(first_at_peak, last - std::max<std::int64_t>(rounded, 1));
}

/// How much of the way from the peak to min_lr is done at x in [0, 1]: 0 at 0 and 1 at 1, exactly.
double descended(ScheduleKind kind, double x) {
  return kind == ScheduleKind::cosine ? (1 - std::cos(std::numbers::pi * x)) / 2 : x;
}

} // namespace

double learning_rate(OptimizerConfig const& optimizer, ScheduleConfig const& schedule, std::int64_t total_updates,
                     std::int64_t updates_applied) {
  bool const descends = schedule.kind != ScheduleKind::constant;
  if (descends && updates_applied >= total_updates) return schedule.min_lr;
  if (updates_applied < schedule.warmup) {
    return optimizer.lr * (static_cast<double>(updates_applied + 1) / static_cast<double>(schedule.warmup));
  }
  if (!descends) return optimizer.lr;

  std::int64_t const start = descent_start(schedule, total_updates);
  if (updates_applied <= start) return optimizer.lr;
  // Here start < updates_applied ≤ last, so there is something to divide by.
  std::int64_t const last = total_updates - 1;
  double const x = static_cast<double>(updates_applied - start) / static_cast<double>(last - start);
  return std::lerp(optimizer.lr, schedule.min_lr, descended(schedule.kind, x)); // exact at both ends, monotonic
}

} // namespace kozero
