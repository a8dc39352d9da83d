#pragma once
#include "core/event.hpp"
#include "core/lane.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace kozero {

/// Keeps the host from being more than so many launches ahead of some lanes while these may wait for other ranks. A
/// stream of CUDA takes about 1024; then the driver holds the host within the next launch, where it looks for no error
/// (core/while_waiting.hpp) and is seen to wait for nobody.
///
///     RunAhead ahead(512, {default_lane(), messages});
///     BetweenLaunches const kept([&] { ahead.look(); });
///
/// It waits as WhileWaiting does: while nothing is under way, not at all.
class RunAhead {
public:
  RunAhead(std::int64_t most, std::vector<Lane> lanes);
  void look();

private:
  static constexpr std::int64_t n_marks = 4;
  using Mark = std::vector<Event>; // of each lane

  std::int64_t stride_;
  std::int64_t given_ = 0; // launches, when the last mark was made
  std::vector<Lane> lanes_;
  std::array<Mark, n_marks> marks_;
  std::size_t oldest_ = 0;
};

} // namespace kozero
