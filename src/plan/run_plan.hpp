#pragma once
#include "config/config.hpp"
#include "data/batch_shape.hpp"
#include "plan/plan_record.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kozero {

/// Host memory of a rank that no ledger counts: the program, Kokkos, MPI and the scratch of matrix products. Measured
/// on hosts with MPICH, one and two threads and models to 100M parameters, as the peak of the resident set less what
/// the ledger held: 38 to 47 MiB. Each further thread adds about 2 MiB (kernels/gemm.hpp), and pages of the data file
/// that were read count as resident while the system has room for them.
inline constexpr std::int64_t uncounted_host_bytes = std::int64_t{48} << 20;

/// Where ranks would be, and what they would reach.
struct PlannedCluster {
  std::optional<std::int64_t> ranks_per_host = {}; // none: all on one
  std::optional<ClusterRates> rates = {};          // for the time of an update
};

/// What the deck's run needs on the batch's ranks, at its own stage and at the others. Looks at no file, takes no
/// memory and needs neither Kokkos nor MPI.
PlanRecord plan_run(Config const& config, BatchShape const& batch, PlannedCluster const& cluster = {});

/// The same as a page for people, in columns.
std::string plan_text(PlanRecord const& plan);

} // namespace kozero
