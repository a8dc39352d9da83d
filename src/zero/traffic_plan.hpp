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
  std::int64_t messages = 0;            // MessageCount of all calls
  std::int64_t between_hosts_messages = 0;
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
  std::int64_t parameter_bytes = 4;    // of an element of the compute type
  std::int64_t gradient_bytes = 4;     // of an element of the gradients
  std::int64_t host_elements = 0;      // of what this rank updates, that the host updates
  std::optional<ExchangeWay> way = {}; // none: all ranks on one host, each hears from every other one
};

/// Messages that come to a rank in an all_gather or a reduce_scatter that takes one round, where no shard is empty.
struct MessageCount {
  std::int64_t all = 0;
  std::int64_t between_hosts = 0; // of those, from other hosts
};

/// One from every other rank. In two levels, on M hosts of L ranks: of a reduce_scatter M parts from each other rank of
/// the host, then a sum from one rank of each other host, (L-1) M + M-1; of an all_gather as much, the other way round:
/// so it is counted, though NCCL moves that as it chooses.
MessageCount messages_of(ExchangeWay const& way, int rank);

/// The bytes that plan.rank() receives in one update, and that go over its host link, in pure integers: the table of
/// doc/architecture.md, rank by rank, by what each collective brings (layout/received.hpp). The update is one after
/// another, with no evaluation and no skipped update between: those leave blocks in stage 3's ring that need not be
/// gathered again.
UpdateTraffic plan_traffic(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses,
                           UpdateShape const& update);

} // namespace kozero
