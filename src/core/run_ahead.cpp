#include "core/run_ahead.hpp"

#include "core/activity.hpp"
#include "core/error.hpp"
#include "core/profile.hpp"
#include "core/while_waiting.hpp"

#include <algorithm>
#include <utility>

namespace kozero {

RunAhead::RunAhead(std::int64_t most, std::vector<Lane> lanes)
    : stride_(most / (n_marks + 1)), lanes_(std::move(lanes)) {
  KOZERO_ASSERT(stride_ > 0);
  for (Mark& mark : marks_) mark.resize(lanes_.size());
}

void RunAhead::look() {
  std::int64_t const given = activity().launches();
  if (given - given_ < stride_) return;
  given_ = given;
  Mark& mark = marks_[oldest_];
  auto const is_passed = [&mark] { return std::ranges::all_of(mark, &Event::done); };
  if (!is_passed()) {
    HostSpan const waits("wait", "run ahead");
    WhileWaiting::wait(is_passed);
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) mark[i].record(lanes_[i]);
  oldest_ = (oldest_ + 1) % n_marks;
}

} // namespace kozero
