#pragma once
#include <functional>

namespace kozero {

/// Work that a host does in the time between two launches, a little at each: messages that nobody would move along
/// otherwise, as there is no second thread. It starts no work between launches itself, and never waits, but where the
/// host is too far ahead of a device (core/run_ahead.hpp).
///
///     BetweenLaunches const gets_on([this] { progress(); });
///
/// It is called after every kernel, copy and library call that a lane is given, while this lives; never from within
/// itself.
class BetweenLaunches {
public:
  explicit BetweenLaunches(std::function<void()> work);
  ~BetweenLaunches();
  BetweenLaunches(BetweenLaunches const&) = delete;
  BetweenLaunches& operator=(BetweenLaunches const&) = delete;

  /// Called by what launches.
  static void run();

private:
  std::function<void()> work_;
};

} // namespace kozero
