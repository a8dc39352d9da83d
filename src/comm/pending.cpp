#include "comm/pending.hpp"

#include <exception>

namespace kozero {

void Pending::wait(Lane const& lane) {
  if (!work_) return;
  auto const work = std::move(work_);
  work->finish(lane);
}

Pending::~Pending() {
  if (work_ && std::uncaught_exceptions() == 0) wait(Lane());
}

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this == &other) return *this;
  if (work_) wait(Lane()); // without work there may be no device either
  work_ = std::move(other.work_);
  return *this;
}

} // namespace kozero
