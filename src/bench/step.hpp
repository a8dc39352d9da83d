#pragma once
#include "bench/report.hpp"
#include "bench/rounds.hpp"
#include "bench/time_parts.hpp"
#include "comm/group.hpp"
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "data/batch_shape.hpp"
#include "io/corpus.hpp"

#include <optional>

namespace kozero {

struct StepBenchInput {
  Config const& config;
  Corpus const& corpus;
  BatchShape batch;
  std::int64_t updates = 3; // a round
  Pace pace = Pace::usual;
};

/// What is measured of updates, by the slowest rank. A round's work is one update; its limit the matrix products of an
/// update of one rank, alone.
struct StepRounds {
  std::vector<Round> rounds;
  TimeParts parts;              // of `profiled` updates of one rank
  std::int64_t profiled = 0;    // updates, with a profile on
  std::int64_t profiled_ns = 0; // what these took
  int rank = 0;                 // whose parts those are: the one that had most to do itself
  std::int64_t skipped = 0;     // updates of all
};

/// What the model and the batch ask for.
struct StepDemand {
  double batch_tokens = 0; // an update, all ranks
  std::int64_t ranks = 1;
  double model_flops = 0;    // a token, forward and backward
  double product_flops = 0;  // of those, of products with weights
  double hardware_flops = 0; // with what is computed again in the backward pass
};

/// What the rounds come to.
struct StepFigures {
  double update_s = 0; // medians
  double least_s = 0;
  double most_s = 0;
  double tokens_per_s = 0;      // of all ranks
  double flops_per_s = 0;       // the model's, of one rank
  double hardware_per_s = 0;    // with what is computed again
  double products_per_s = 0;    // of the same products, alone
  double share_of_products = 0; // of that rate by the model's, of rounds in which both take turns
};

StepFigures step_figures(StepDemand const& demand, std::span<Round const> rounds);

/// Where the time of an update goes. Seconds a part, which add up to the update that was profiled.
BenchTable step_parts(StepRounds const& measured);

/// Updates of the deck's training from its first batch, after two that are not counted, and the matrix products of the
/// same shapes in turn with them. A delay of updates begins with the first one, whatever the deck says; nothing is
/// saved. Collective.
BenchReport bench_step(StepBenchInput const& input, Group const& group, Ledger& ledger);

} // namespace kozero
