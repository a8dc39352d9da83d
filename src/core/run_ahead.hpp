#pragma once
#include "core/event.hpp"
#include "core/lane.hpp"

#include <array>
#include <cstdint>

namespace kozero {

/// Keeps the host from being more than so many launches ahead of the default lane while lanes may wait for other ranks.
/// A stream of CUDA takes about 1024; then the driver holds the host within the next launch, where it looks for no
/// error (core/while_waiting.hpp) and is seen to wait for nobody.
///
///     RunAhead ahead(512);
///     BetweenLaunches const kept([&] { ahead.look(); });
///
/// It waits as WhileWaiting does: while nothing is under way, not at all.
class RunAhead {
public:
  explicit RunAhead(std::int64_t most);
  void look();

private:
  static constexpr std::int64_t n_marks = 4;

  std::int64_t stride_;
  std::int64_t given_ = 0; // launches, when the last mark was made
  LazyLane lane_;
  std::array<Event, n_marks> marks_;
  std::size_t oldest_ = 0;
};

} // namespace kozero
