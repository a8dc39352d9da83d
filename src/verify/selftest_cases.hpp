#pragma once
#include "config/config.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// Runs of one class must have the same bits; doc/numerics.md says why.
struct SelftestClass {
  enum class SumOrder { micro_batches_first, ranks_first }; // of gradients
  SumOrder order = SumOrder::micro_batches_first;
  bool delayed = false; // an update, before the run's end
  friend bool operator==(SelftestClass const&, SelftestClass const&) = default;
};

/// What a table says of a case, one column each.
inline constexpr std::array selftest_columns = {"stage", "offload", "delayed", "recompute"};

/// One way to train the deck's model.
struct SelftestCase {
  Config config; // the deck's, with other values of zero.stage, offload and activations.recompute
  std::array<std::string, selftest_columns.size()> columns;
  SelftestClass kind;
};

/// Every legal combination of stage, offload (none; on the host half of the shards; all) and delayed update (none; from
/// update 2); then one whose delay would start after the end, and one with the other choice of activations.recompute.
/// `deck` has no faults; `accumulate` micro-batches and `updates` are what each run does.
std::vector<SelftestCase> selftest_cases(Config const& deck, std::int64_t accumulate, std::int64_t updates);

} // namespace kozero
