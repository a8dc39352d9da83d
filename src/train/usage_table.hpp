#pragma once
#include "comm/traffic.hpp"
#include "core/ledger.hpp"
#include "train/rank_plan.hpp"
#include "zero/link.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// The most bytes that one update brought this rank. An update after an evaluation or a skipped one may bring less than
/// others, as stage 3's ring still holds blocks; none brings more.
class MostReceived {
public:
  /// An update was done between these two states of the communicator's account.
  void note(TrafficLedger const& before, TrafficLedger const& after);
  void note(LinkTraffic const& before, LinkTraffic const& after);
  std::int64_t bytes(Traffic purpose) const { return bytes_[static_cast<std::size_t>(purpose)]; }
  LinkTraffic const& link() const { return link_; }

private:
  std::array<std::int64_t, 3> bytes_{};
  LinkTraffic link_;
};

/// Predicted beside measured, a line each: what each row of the ledger held at the most, and what an update brought.
std::vector<std::string> usage_table(RankPlan const& plan, Ledger const& ledger, MostReceived const& received);

} // namespace kozero
