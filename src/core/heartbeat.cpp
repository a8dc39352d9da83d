#include "core/heartbeat.hpp"

namespace kozero {

namespace {

std::int64_t ns_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

void Heartbeat::reach(char const* what, char const* of) {
  what_.store(what, std::memory_order_relaxed);
  of_.store(of, std::memory_order_relaxed);
  add(collectives_, 1);
}

Heartbeat::Wait::Wait() : is_within_another_(heartbeat().waits()) {
  heartbeat().waits_.store(true, std::memory_order_relaxed);
}

Heartbeat::Wait::~Wait() {
  if (is_within_another_) return;
  add(heartbeat().waited_ns_, ns_since(begin_));
  heartbeat().waits_.store(false, std::memory_order_relaxed);
}

Heartbeat::Batch::Batch() : waited_ns_(heartbeat().waited_ns_) {}

void Heartbeat::Batch::done() const {
  add(heartbeat().busy_ns_, ns_since(begin_) - (heartbeat().waited_ns_ - waited_ns_));
  add(heartbeat().batches_, 1);
}

Heartbeat::Reading Heartbeat::read() const {
  return {.beats = beats_,
          .collectives = collectives_,
          .what = what_,
          .of = of_,
          .waits = waits_,
          .batches = batches_,
          .busy_ns = busy_ns_};
}

Heartbeat& heartbeat() {
  static Heartbeat all;
  return all;
}

} // namespace kozero
