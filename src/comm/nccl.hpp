#pragma once
// NCCL as the rest of the program sees it; the library's own header is in comm/nccl_calls.hpp.

#include "comm/collectives.hpp"
#include "comm/ranks.hpp"
#include "core/lane.hpp"
#include "layout/rank_hosts.hpp"

#include <memory>
#include <string>

namespace kozero {

bool built_with_nccl();

/// "2.28.9" of 22809
std::string nccl_version_text(int version);

/// The library's version; Error that says what to do where it is not there, or the program was built without it.
std::string load_nccl();

/// What all groups of a process share: the lane that their messages have, one after the other in the order of the
/// calls, which is alike on all ranks; and device memory that sums pass through. A lane a group would let groups meet
/// in one order here and in another there, and wait for each other for ever.
struct MessageLane {
  /// Takes nothing before a group is made.
  explicit MessageLane(std::int64_t its_bytes = default_bytes) : bytes(its_bytes) {}
  static constexpr std::int64_t default_bytes = std::int64_t{64} << 20;

  /// Once.
  void take(Ledger& ledger) {
    if (memory.size() > 0) return;
    memory = {ledger, Category::staging, "messages", bytes, DeviceBuffer<unsigned char>::Init::none};
  }

  std::int64_t bytes;
  LazyLane lane{"messages"};
  DeviceBuffer<unsigned char> memory;
};

struct NcclOptions {
  /// Of the group's ranks.
  RankHosts hosts;
  /// The longest that ranks wait for each other when they connect, and in their first exchange; and at the end, for
  /// what is under way, and for the library to close.
  double connect_limit_s = 300;
  double close_limit_s = 10;
};

/// Collective. An error of one rank is all ranks'. `ranks`, the ledger and what is shared must outlive it.
std::unique_ptr<Collectives> make_nccl_collectives(Ranks& ranks, Ledger& ledger, std::shared_ptr<MessageLane> shared,
                                                   NcclOptions const& options);

} // namespace kozero
