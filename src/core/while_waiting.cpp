#include "core/while_waiting.hpp"

#include "core/heartbeat.hpp"

#include <sched.h>

#include <algorithm>
#include <vector>

namespace kozero {

namespace {

std::vector<std::function<bool()> const*>& registered() {
  static std::vector<std::function<bool()> const*> all;
  return all;
}

} // namespace

WhileWaiting::WhileWaiting(std::function<bool()> look) : look_(std::move(look)) { registered().push_back(&look_); }

WhileWaiting::~WhileWaiting() { std::erase(registered(), &look_); }

bool WhileWaiting::look() {
  bool under_way = false;
  for (auto const* const look : registered()) under_way = (*look)() || under_way;
  return under_way;
}

void WhileWaiting::wait(std::function<bool()> const& done) {
  if (done() || !look()) return;
  Heartbeat::Wait const wait; // for other ranks, as far as anybody knows
  while (!done() && look()) sched_yield();
}

} // namespace kozero
