#pragma once
#include "core/dtype.hpp"
#include "core/host_simd.hpp"
#include "core/ledger.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// The step of rows that get no gradient, as those of rare tokens, beside that of rows that do. In 32 updates their
/// moments decay from just above the least normal number: what subnormal numbers cost shows here.
struct ColdRate {
  double warm_ns_per_parameter = 0;
  double cold_ns_per_parameter = 0;
  double ratio = 0; // cold to warm, of rounds in which both take turns
};

/// How fast one kind of host step is, beside what the same memory gives to the same threads.
struct AdamBenchRow {
  std::string compute = {};   // "bf16", "fp32": in the deck's words
  std::string gradients = {}; // of the arrays, so never "compute"
  int threads = 1;
  /// That a parameter moves: master, m, v in and out, the gradient in; with 16-bit compute the result out and, before
  /// it, in: a processor reads the line that it writes a part of. In fp32 the master is the result.
  int bytes_per_parameter = 0;
  double ns_per_parameter = 0;
  double gb_per_s = 0;               // of those bytes
  double probe_gb_per_s = 0;         // of a loop that reads and writes three arrays of floats, 24 bytes an element
  double share = 0;                  // of the probe's rate; can exceed 1 a little
  std::optional<ColdRate> cold = {}; // if it was asked for; of at most 16M parameters
};

/// Host memory that the benchmark takes for one parameter, at most.
inline constexpr std::int64_t adam_bench_bytes_per_parameter = 18;

/// What was measured in a round, in which step and probe, warm and cold take turns, so that what else goes on on the
/// host touches both.
struct AdamBenchRound {
  double step_s = 0; // of all parameters
  double probe_s = 0;
};
struct ColdRound {
  double warm_ns_per_parameter = 0;
  double cold_ns_per_parameter = 0;
};

/// The figures of a row of `kind` from its rounds, at least one: medians, and of the share and the ratio those of the
/// rounds, not the quotient of two medians.
AdamBenchRow adam_bench_row(AdamBenchRow kind, std::int64_t parameters, std::span<AdamBenchRound const> rounds);
ColdRate cold_rate(std::span<ColdRound const> rounds);

enum class ColdRows { left_out, measured };

/// The host step of `parameters` ≥ 1 parameters, for each compute type and type of gradients: with all of Kokkos'
/// threads, and with one where there are more.
std::vector<AdamBenchRow> bench_adam(std::int64_t parameters, ColdRows cold, Ledger& ledger);

/// What a host offers to this process.
struct HostOffer {
  int processors = 1; // that the host has
  int allowed = 1;    // that this process may run on
  HostTarget target = HostTarget::baseline;
};

/// For each row below half of the probe's rate, a line that says so and what usually causes it.
std::vector<std::string> adam_bench_warnings(std::vector<AdamBenchRow> const& rows, HostOffer const& offer);

/// Nanoseconds that the host step of offloaded state takes for one of `parameters` ≥ 1 parameters, with all of Kokkos'
/// threads: a quick measurement on at most 16M of them, for predictions at the program's start. Its memory is in no
/// run's account and is free when it returns.
double measure_host_adam_ns_per_parameter(std::int64_t parameters, DType compute, DType gradients);

} // namespace kozero
