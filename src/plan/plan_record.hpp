#pragma once
#include "core/ledger.hpp"
#include "plan/scaling.hpp"
#include "zero/traffic_plan.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kozero {

/// What a run needs at one stage of ZeRO, on rank 0: no rank holds more.
struct PlannedStage {
  std::string refusal = {};           // why the deck's other keys do not go with the stage; empty: they do
  std::vector<MemoryRow> memory = {}; // the most that each row will hold
  UpdateTraffic traffic = {};         // of an update
  bool device_fits = true;            // memory.device_limit holds
  bool host_fits = true;              // memory.host_limit holds, for host and pinned memory together
  double formula_bytes = 0;           // of model state, by the formula of the ZeRO paper
};

/// What `kozero plan` says of a deck on so many ranks.
struct PlanRecord {
  std::string version = {}; // of kozero
  std::string model = {};   // in words
  std::int64_t parameters = 0;
  std::int64_t ranks = 1;
  std::int64_t micro = 1, accumulate = 1, global = 1, context = 1;        // windows, and tokens of a window
  std::string compute = {}, gradients = {}, offload = {}, recompute = {}; // the deck's words
  std::string attention = {};                                             // which way it takes and why, in words
  std::string transport = {};                                             // parallel.transport, with auto decided
  std::optional<std::int64_t> ranks_per_host;                             // none: nobody asked
  std::optional<int> ranks_of_first_sums;                                 // of a host, where sums are made there first
  double offload_ratio = 1;                                               // offload.ratio
  std::optional<std::int64_t> delayed_update_start;                       // offload.delayed_update.start
  std::optional<std::int64_t> device_limit, host_limit;                   // bytes
  std::array<PlannedStage, 4> stages = {};
  std::size_t chosen = 0;            // the deck's stage
  std::int64_t uncounted_bytes = 0;  // of host memory that no ledger counts: the program, its libraries, their scratch
  std::int64_t checkpoint_bytes = 0; // of the tensors of one checkpoint, all ranks together
  std::int64_t checkpoints_kept = 1; // checkpoint.keep and keep_best

  /// The table of the ZeRO paper (Rajbhandari et al., 2020, figure 1): bytes of model state a rank at stages 0 to 3.
  double paper_parameters = 0, paper_ranks = 0;
  std::array<double, 4> paper_bytes = {};

  /// Where times were asked for: what of, and the deck's updates on more and more ranks.
  std::optional<ClusterRates> rates;
  std::vector<PredictedUpdate> predicted = {};

  PlannedStage const& deck_stage() const { return stages[chosen]; }
};

/// One JSON object with all of it: what the deck's stage needs at the top, that of every stage in "stages". Bytes are
/// integers; rows of memory that are zero are left out.
std::string to_json(PlanRecord const& plan);

} // namespace kozero
