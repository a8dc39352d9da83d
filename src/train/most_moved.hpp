#pragma once
#include "comm/traffic.hpp"
#include "zero/link.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace kozero {

/// What had been moved at some time: the accounts of the ranks and of the engine.
struct MovedSoFar {
  TrafficLedger received;
  LinkTraffic link;
};

/// The most bytes that one update brought this rank, and sent over its host link. An update after an evaluation or a
/// skipped one may bring less than others, as stage 3's ring still holds blocks; none brings more.
class MostMoved {
public:
  /// An update was done between these two times.
  void note(MovedSoFar const& before, MovedSoFar const& after) {
    noted_ = true;
    for (Traffic const purpose : {Traffic::parameters, Traffic::gradients}) {
      auto& most = received_[static_cast<std::size_t>(purpose)];
      most = std::max(most, after.received[purpose].bytes - before.received[purpose].bytes);
      auto& far = between_hosts_[static_cast<std::size_t>(purpose)];
      far = std::max(far, after.received[purpose].between_hosts_bytes - before.received[purpose].between_hosts_bytes);
    }
    link_.down_bytes = std::max(link_.down_bytes, after.link.down_bytes - before.link.down_bytes);
    link_.up_bytes = std::max(link_.up_bytes, after.link.up_bytes - before.link.up_bytes);
  }
  /// Whether an update was noted.
  bool anything() const { return noted_; }
  std::int64_t received(Traffic purpose) const { return received_[static_cast<std::size_t>(purpose)]; }
  /// Of that, from other hosts.
  std::int64_t between_hosts(Traffic purpose) const { return between_hosts_[static_cast<std::size_t>(purpose)]; }
  LinkTraffic const& link() const { return link_; }

private:
  bool noted_ = false;
  std::array<std::int64_t, 3> received_{}, between_hosts_{};
  LinkTraffic link_;
};

} // namespace kozero
