#pragma once
#include "layout/block_layout.hpp"
#include "layout/received.hpp"
#include "layout/unit_schedule.hpp"
#include "zero/plan.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// What one kind of collective brings a rank in one update.
struct CollectiveTraffic {
  std::string collective; // "all_gather", or "none"
  std::int64_t calls = 0;
  std::int64_t bytes = 0;               // received from other ranks
  std::int64_t between_hosts_bytes = 0; // of those, from ranks of other hosts
  std::int64_t messages = 0; // that the rank sends, where each call is done in one round and no shard is empty
  Received first_block = {}; // what one call for the first unit's block brings
  friend bool operator==(CollectiveTraffic const&, CollectiveTraffic const&) = default;
};

/// What one update moves to a rank, and between its device and its host.
struct UpdateTraffic {
  CollectiveTraffic parameters, gradients;
  std::int64_t to_host_bytes = 0;
  std::int64_t to_device_bytes = 0;
  friend bool operator==(UpdateTraffic const&, UpdateTraffic const&) = default;
};

/// What of an update decides how much it moves, beside the plan and the model.
struct UpdateShape {
  std::int64_t parameter_bytes = 4; // of an element of the compute type
  std::int64_t gradient_bytes = 4;  // of an element of the gradients
  std::int64_t host_elements = 0;   // of what this rank updates, that the host updates
  std::optional<ExchangeWay> way = {}; // none: all ranks on one host, each hears from every other one
};

/// Messages that a rank sends in one round. A part goes to every other rank; of a reduce_scatter in two levels, parts
/// for all hosts go to each other rank of the own host, and a sum to one rank of each other host.
std::int64_t messages_of_all_gather(int ranks);
std::int64_t messages_of_reduce_scatter(int ranks, std::optional<int> const& ranks_of_host);

/// The bytes that plan.rank() receives in one update, and that go over its host link, in pure integers: the table of
/// doc/architecture.md, rank by rank, by what each collective brings (layout/received.hpp). The update is one after
/// another, with no evaluation and no skipped update between: those leave blocks in stage 3's ring that need not be
/// gathered again.
UpdateTraffic plan_traffic(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses,
                           UpdateShape const& update);

} // namespace kozero
