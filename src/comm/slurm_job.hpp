#pragma once
#include "comm/environment.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kozero {

/// What Slurm has told this process about the job that it is part of, in its environment.
///
///   if (auto const job = slurm_job()) log::info("job {}", job->id);
struct SlurmJob {
  std::string id; // "1234"; task 7 of an array is "1230_7"
  std::string partition;
  std::int64_t nodes = 1;
  std::int64_t restarts = 0;                                // times that it was requeued
  std::optional<std::int64_t> tasks;                        // of the job; in a step of srun, of the step
  std::optional<std::int64_t> cpus_per_task;                // as asked for, which is not always what the step got
  std::optional<std::int64_t> memory_per_node_bytes;        // none: all of a node, or Slurm does not ration it
  std::optional<std::chrono::system_clock::time_point> end; // when it is ended, as job_end() says
};

/// None outside of a job.
std::optional<SlurmJob> slurm_job(EnvironmentLookup const& lookup);
std::optional<SlurmJob> slurm_job(); // of this process

/// When the scheduler ends the job: KOZERO_JOB_END, seconds since 1970, which a batch script of any scheduler may set,
/// or SLURM_JOB_END_TIME, which Slurm sets from 23.02 on. None where neither says it; an InputError where
/// KOZERO_JOB_END is neither empty nor such a number.
std::optional<std::chrono::system_clock::time_point> job_end(EnvironmentLookup const& lookup);
std::optional<std::chrono::system_clock::time_point> job_end(); // of this process

} // namespace kozero
