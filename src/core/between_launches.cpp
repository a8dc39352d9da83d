#include "core/between_launches.hpp"

#include "core/heartbeat.hpp"

#include <algorithm>
#include <vector>

namespace kozero {

namespace {

struct Registered {
  std::vector<std::function<void()> const*> works;
  bool running = false;
};

Registered& registered() {
  static Registered all;
  return all;
}

/// While it lives, launches run nothing in between.
class Running {
public:
  explicit Running(bool& flag) : flag_(flag) { flag_ = true; }
  ~Running() { flag_ = false; }
  Running(Running const&) = delete;
  Running& operator=(Running const&) = delete;

private:
  bool& flag_;
};

} // namespace

BetweenLaunches::BetweenLaunches(std::function<void()> work) : work_(std::move(work)) {
  registered().works.push_back(&work_);
}

BetweenLaunches::~BetweenLaunches() { std::erase(registered().works, &work_); }

void BetweenLaunches::run() {
  heartbeat().beat();
  auto& all = registered();
  if (all.works.empty() || all.running) return;
  Running const running(all.running);
  for (auto const* const work : all.works) (*work)();
}

} // namespace kozero
