#pragma once
#include "comm/traffic.hpp"
#include "core/ledger.hpp"
#include "plan/rank_plan.hpp"
#include "zero/link.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// What had been moved at some time: the accounts of the communicator and of the engine.
struct MovedSoFar {
  TrafficLedger received;
  LinkTraffic link;
};

/// The most bytes that one update brought this rank, and sent over its host link. An update after an evaluation or a
/// skipped one may bring less than others, as stage 3's ring still holds blocks; none brings more.
class MostMoved {
public:
  /// An update was done between these two times.
  void note(MovedSoFar const& before, MovedSoFar const& after);
  /// Whether an update was noted.
  bool anything() const { return noted_; }
  std::int64_t received(Traffic purpose) const { return received_[static_cast<std::size_t>(purpose)]; }
  LinkTraffic const& link() const { return link_; }

private:
  bool noted_ = false;
  std::array<std::int64_t, 3> received_{};
  LinkTraffic link_;
};

/// Predicted beside measured, a line each: what each row of the ledger held at the most, and what an update moved.
std::vector<std::string> usage_table(RankPlan const& plan, Ledger const& ledger, MostMoved const& moved);

} // namespace kozero
