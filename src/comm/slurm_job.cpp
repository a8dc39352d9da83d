#include "comm/slurm_job.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

namespace kozero {

namespace {

constexpr std::int64_t mebibyte = 1 << 20;                  // Slurm's "MB"
constexpr std::int64_t last_second = std::int64_t{1} << 33; // in the year 2242; a clock of nanoseconds goes further

std::string text_in(EnvironmentLookup const& lookup, char const* name) {
  char const* const value = lookup(name);
  return value == nullptr ? "" : value;
}

std::string id_in(EnvironmentLookup const& lookup) {
  std::string const array = text_in(lookup, "SLURM_ARRAY_JOB_ID");
  if (array.empty()) return text_in(lookup, "SLURM_JOB_ID");
  return fmt::format("{}_{}", array, text_in(lookup, "SLURM_ARRAY_TASK_ID"));
}

/// --mem, or --mem-per-cpu for each CPU that the job has on this node. --mem=0 asks for all that there is.
std::optional<std::int64_t> memory_in(EnvironmentLookup const& lookup) {
  auto megabytes = number_in(lookup, "SLURM_MEM_PER_NODE");
  if (!megabytes) {
    auto const each = number_in(lookup, "SLURM_MEM_PER_CPU");
    auto const cpus = number_in(lookup, "SLURM_CPUS_ON_NODE");
    if (each && cpus) megabytes = *each * *cpus;
  }
  if (!megabytes || *megabytes <= 0) return std::nullopt;
  return *megabytes * mebibyte;
}

} // namespace

std::optional<std::chrono::system_clock::time_point> job_end(EnvironmentLookup const& lookup) {
  std::string const told = text_in(lookup, "KOZERO_JOB_END");
  auto const seconds = number_in(lookup, told.empty() ? "SLURM_JOB_END_TIME" : "KOZERO_JOB_END");
  bool const is_time = seconds && *seconds >= 0 && *seconds <= last_second;
  if (!is_time && !told.empty()) {
    throw InputError(fmt::format("KOZERO_JOB_END is '{}' (the job's end in seconds since 1970, as date +%s prints, or "
                                 "nothing); correct the batch script or unset it",
                                 told));
  }
  if (!is_time) return std::nullopt;
  return std::chrono::system_clock::time_point(std::chrono::seconds(*seconds));
}

std::optional<std::chrono::system_clock::time_point> job_end() { return job_end(process_environment); }

std::optional<SlurmJob> slurm_job(EnvironmentLookup const& lookup) {
  std::string id = id_in(lookup);
  if (id.empty()) return std::nullopt;
  return SlurmJob{.id = std::move(id),
                  .partition = text_in(lookup, "SLURM_JOB_PARTITION"),
                  .nodes = number_in(lookup, "SLURM_JOB_NUM_NODES").value_or(1),
                  .restarts = number_in(lookup, "SLURM_RESTART_COUNT").value_or(0),
                  .tasks = number_in(lookup, "SLURM_NTASKS"),
                  .cpus_per_task = number_in(lookup, "SLURM_CPUS_PER_TASK"),
                  .memory_per_node_bytes = memory_in(lookup),
                  .end = job_end(lookup)};
}

std::optional<SlurmJob> slurm_job() { return slurm_job(process_environment); }

} // namespace kozero
