#pragma once
// The benchmarks of kernels, memory and messages: each makes its arrays, measures in rounds, and reports. Collective:
// ranks measure at the same time, and figures are those of the slowest.

#include "bench/report.hpp"
#include "bench/rounds.hpp"
#include "comm/group.hpp"
#include "config/config.hpp"
#include "core/ledger.hpp"

namespace kozero {

/// Whose shapes are measured, how long, and by whom.
struct BenchInput {
  Config const& config; // model, batch.micro and precision count
  Pace pace = Pace::usual;
  Ranks& ranks;
  Ledger& ledger;
};

/// The matrix products of a micro-batch, forward and backward, beside the peak of the device.
BenchReport bench_gemm(BenchInput const& input);

/// Attention of a micro-batch, forward and backward, beside the first product of the model. InputError where the model
/// has none.
BenchReport bench_attention(BenchInput const& input);

/// Copies between device and host memory, beside one within host memory, and what the memories give.
BenchReport bench_link(BenchInput const& input);

/// The collectives that training makes of the model's blocks, beside copies of as many bytes. InputError for one rank.
BenchReport bench_exchange(BenchInput const& input, Group const& group);

/// The facts that all of them begin with: device, ranks.
std::vector<BenchFact> bench_facts(Ranks& ranks);

/// Share of a limit, in percent for people.
BenchValue bench_share(double share);

} // namespace kozero
