#pragma once
#include "core/dtype.hpp"
#include "core/host_simd.hpp"
#include "core/ledger.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// How fast one kind of host step is, beside what the same memory gives to the same threads.
struct AdamBenchRow {
  std::string compute = {};   // "bf16", "fp32": in the deck's words
  std::string gradients = {}; // of the arrays, so never "compute"
  int threads = 1;
  /// That a parameter moves: master, m, v in and out, the gradient in, the result out and, before it, in: a processor
  /// reads the line that it writes a part of.
  int bytes_per_parameter = 0;
  double ns_per_parameter = 0;
  double gb_per_s = 0;       // of those bytes
  double probe_gb_per_s = 0; // of a loop that reads and writes three arrays of floats, 24 bytes an element
  double share = 0;          // of the probe's rate; can exceed 1 a little
};

/// Host memory that the benchmark takes for one parameter, at most.
inline constexpr std::int64_t adam_bench_bytes_per_parameter = 20;

/// The host step of `parameters` ≥ 1 parameters, for each compute type and type of gradients: with all of Kokkos'
/// threads, and with one where there are more. Probe and step take turns on the same arrays; the rows hold medians.
std::vector<AdamBenchRow> bench_adam(std::int64_t parameters, Ledger& ledger);

/// What a host offers to this process.
struct HostOffer {
  int processors = 1; // that the host has
  int allowed = 1;    // that this process may run on
  HostTarget target = HostTarget::baseline;
};

/// For each row below half of the probe's rate, a line that says so and what usually causes it.
std::vector<std::string> adam_bench_warnings(std::vector<AdamBenchRow> const& rows, HostOffer const& offer);

/// Nanoseconds that the host step takes for one of `parameters` ≥ 1 parameters, with all of Kokkos' threads: a quick
/// measurement on at most 16M of them, for predictions at the program's start. Its memory is in no run's account and
/// is free when it returns.
double measure_host_adam_ns_per_parameter(std::int64_t parameters, DType compute, DType gradients);

} // namespace kozero
