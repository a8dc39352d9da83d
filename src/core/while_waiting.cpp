#include "core/while_waiting.hpp"

#include "core/heartbeat.hpp"

#include <sched.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace kozero {

namespace {

std::vector<std::function<WhileWaiting::Seen()> const*>& registered() {
  static std::vector<std::function<WhileWaiting::Seen()> const*> all;
  return all;
}

} // namespace

WhileWaiting::WhileWaiting(std::function<Seen()> look) : look_(std::move(look)) { registered().push_back(&look_); }

WhileWaiting::~WhileWaiting() { std::erase(registered(), &look_); }

WhileWaiting::Seen WhileWaiting::look() {
  Seen seen = Seen::nothing;
  for (auto const* const look : registered()) seen = std::max(seen, (*look)());
  return seen;
}

void WhileWaiting::wait(std::function<bool()> const& done) {
  std::optional<Heartbeat::Wait> for_ranks;
  while (!done()) {
    Seen const seen = look();
    if (seen == Seen::nothing) return;
    if (seen != Seen::holds_back_lane) {
      for_ranks.reset();
    } else if (!for_ranks) {
      for_ranks.emplace();
    }
    sched_yield();
  }
}

} // namespace kozero
