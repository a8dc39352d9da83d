#pragma once
#include "comm/planned.hpp"
#include "config/config.hpp"
#include "data/batch_shape.hpp"
#include "zero/traffic_plan.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kozero {

/// What a rank of a cluster reaches, as `kozero bench` measures it.
struct ClusterRates {
  double flops = 0;   // operations of forward and backward passes a second
  double within = 0;  // bytes a second that come to a rank from its own host
  double between = 0; // and from other hosts
  double latency = 0; // seconds that a collective takes beside what its bytes take
};

/// Of "flops=4.5e14,within=3e11,between=4.5e10,latency=2e-5", in any order. InputError where that is not what it is.
ClusterRates parse_rates(std::string_view text);

/// An update of one rank, without its optimizer's step.
struct UpdateWork {
  std::int64_t ranks = 1;
  double tokens = 1; // of all ranks
  double forward_flops = 0;
  double backward_flops = 0;      // what is computed again too
  std::int64_t micro_batches = 1; // that both share
  std::int64_t reductions = 1;    // of gradients, each after as many micro-batches
  /// While the passes go on, or after an update, beside the next forward pass.
  enum class Gathers { in_passes, after_update } gathers = Gathers::after_update;
  UpdateTraffic traffic = {};
};

/// Seconds of an update.
struct PredictedUpdate {
  std::int64_t ranks = 1;
  double tokens = 1;    // of all ranks
  double compute_s = 0; // forward and backward passes
  double within_s = 0;  // exchange with ranks of the own host
  double between_s = 0; // and of others
  double latency_s = 0; // of all calls
  double exposed_s = 0; // of the exchange, what nothing hides

  double update_s() const { return compute_s + exposed_s; }
  double tokens_per_s() const { return tokens / update_s(); }
};

/// By the model of doc/scaling.md: what is exchanged is hidden behind the passes that it may go on beside, but for the
/// first unit's blocks, which come before and after all computation.
PredictedUpdate predict_update(UpdateWork const& work, ClusterRates const& rates);

/// The deck's updates on one host, on 2, 4, 8, … hosts, and on all ranks of the batch; each rank has as many windows
/// as there. InputError where the optimizer works on the host, of which the model knows nothing.
std::vector<PredictedUpdate> predict_scaling(Config const& config, BatchShape const& batch, std::int64_t ranks_per_host,
                                             ClusterRates const& rates);

/// What a rank does in a second, of what it does on the first of them; 1 for that.
double efficiency(PredictedUpdate const& update, std::vector<PredictedUpdate> const& all);

} // namespace kozero
