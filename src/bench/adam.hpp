#pragma once
#include "bench/report.hpp"
#include "bench/rounds.hpp"
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

/// How fast one kind of step is, beside what the same memory gives to the same threads.
struct AdamBenchRow {
  Space memory = Space::host; // where the state is, and who steps: the host's threads, or the device
  std::string compute = {};   // "bf16", "fp32": in the deck's words
  std::string gradients = {}; // of the arrays, so never "compute"
  std::int64_t threads = 1;   // of the host; 0: the device's own
  /// That a parameter moves: master, m, v in and out, the gradient in; with 16-bit compute the result out and, before
  /// it, in: a processor reads the line that it writes a part of. In fp32 the master is the result.
  std::int64_t bytes_per_parameter = 0;
  double ns_per_parameter = 0;
  double gb_per_s = 0;               // of those bytes
  double triad_gb_per_s = 0;         // of bench/triad.hpp on the same memory
  double share = 0;                  // of the triad's rate; can exceed 1 a little
  std::optional<ColdRate> cold = {}; // if it was asked for; of at most 16M parameters
};

/// Memory that the benchmark takes for one parameter, at most.
inline constexpr std::int64_t adam_bench_bytes_per_parameter = 18;

/// The figures of a row of `kind` from its rounds, a step beside a triad of as many elements.
AdamBenchRow adam_bench_row(AdamBenchRow kind, std::int64_t parameters, std::span<Round const> rounds);
/// From seconds a parameter: work is the warm step, limit the cold one.
ColdRate cold_rate(std::span<Round const> rounds);

enum class ColdRows { left_out, measured };

struct AdamBenchInput {
  std::int64_t parameters = 1; // at least one
  ColdRows cold = ColdRows::left_out;
  Pace pace = Pace::usual;
  Ranks& ranks;
  Ledger& ledger;
};

/// The step of so many parameters, for each compute type and type of gradients: by the host with all of Kokkos'
/// threads, and with one where there are more, and by the device where that is another. Collective.
std::vector<AdamBenchRow> measure_adam(AdamBenchInput const& input);

/// What a host offers to this process.
struct HostOffer {
  int processors = 1; // that the host has
  int allowed = 1;    // that this process may run on
  HostTarget target = HostTarget::baseline;
};

/// For each row of the host below half of the triad's rate, a line that says so and what usually causes it.
std::vector<std::string> adam_bench_warnings(std::vector<AdamBenchRow> const& rows, HostOffer const& offer);

/// measure_adam, as a report. Collective.
BenchReport bench_adam(AdamBenchInput const& input, HostOffer const& offer);

/// Nanoseconds that the host step of offloaded state takes for one of `parameters` ≥ 1 parameters, with all of Kokkos'
/// threads: a quick measurement on at most 16M of them, for predictions at the program's start. Its memory is in no
/// run's account and is free when it returns.
double measure_host_adam_ns_per_parameter(std::int64_t parameters, DType compute, DType gradients);

} // namespace kozero
