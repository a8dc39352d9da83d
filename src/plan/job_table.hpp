#pragma once
#include "comm/slurm_job.hpp"
#include "comm/survey.hpp"
#include "config/config.hpp"
#include "core/ledger.hpp"

#include <string>
#include <vector>

namespace kozero {

/// "Slurm 1234 in partition main, 2 nodes, 4 tasks of 8 CPUs, 62.50 GiB a node, ends in 1h 59m (requeued once)"
std::string describe(SlurmJob const& job, std::chrono::system_clock::time_point now);

/// What the job and the run disagree in: ranks and tasks, threads or processors and CPUs a task, memory planned for the
/// ranks of a host (`rank_memory`: of the rank with most, rows of a RankPlan) and memory a node, time limits.
std::vector<std::string> disagreements(SlurmJob const& job, Survey const& survey, RunConfig const& run,
                                       std::vector<MemoryRow> const& rank_memory,
                                       std::chrono::system_clock::time_point now);

} // namespace kozero
