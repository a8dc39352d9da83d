#include "core/run_ahead.hpp"

#include "core/activity.hpp"
#include "core/error.hpp"
#include "core/while_waiting.hpp"

namespace kozero {

RunAhead::RunAhead(std::int64_t most) : stride_(most / (n_marks + 1)) { KOZERO_ASSERT(stride_ > 0); }

void RunAhead::look() {
  std::int64_t const given = activity().launches();
  if (given - given_ < stride_) return;
  given_ = given;
  Event& mark = marks_[oldest_];
  WhileWaiting::wait([&mark] { return mark.done(); });
  mark.record(lane_);
  oldest_ = (oldest_ + 1) % n_marks;
}

} // namespace kozero
