#pragma once
#include "core/lane.hpp"

#include <cstdint>
#include <memory>

namespace kozero {

/// A point in a lane's order of work.
///
///     Event copied;
///     copied.record(up);           // after what `up` has been given so far
///     copied.hold_back(compute);   // what `compute` gets from now on runs after that; the host goes on
///     if (copied.done()) …         // asks, never waits
///
/// One that was never recorded has been passed. It may be recorded again and again, and keeps what it takes for that.
class Event {
public:
  Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();

  void record(Lane const& lane);
  void hold_back(Lane const& later) const;
  bool done() const;
  /// The host waits; `why` as in Lane::fence.
  void wait(char const* why) const;

private:
  struct Point; // what the backend makes of it
  std::unique_ptr<Point> point_;
};

/// What is given to `later` from now on runs after all that was given to `earlier` before. The host does not wait.
void order_after(Lane const& later, Lane const& earlier);

} // namespace kozero
