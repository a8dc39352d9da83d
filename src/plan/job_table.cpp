#include "plan/job_table.hpp"

#include "core/format.hpp"
#include "core/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kozero {

namespace {

using Clock = std::chrono::system_clock;

double seconds_from(Clock::time_point now, Clock::time_point end) {
  return std::chrono::duration<double>(end - now).count();
}

std::string counted(std::int64_t count, char const* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// What the model of one rank takes of its host's memory.
std::int64_t on_host(std::vector<MemoryRow> const& rank_memory) {
  std::int64_t bytes = budget_bytes(rank_memory, Space::host);
  if (host_reaches_device) bytes += budget_bytes(rank_memory, Space::device);
  return bytes;
}

void compare_ranks(SlurmJob const& job, Survey const& survey, std::vector<std::string>& found) {
  if (!job.tasks || survey.ranks >= *job.tasks) return;
  found.push_back(fmt::format("the job has {} tasks and the run {} (it was not started by srun, or by mpiexec with "
                              "fewer); start it with srun, or with mpiexec -n $SLURM_NTASKS",
                              *job.tasks, counted(survey.ranks, "rank")));
}

void compare_cpus(SlurmJob const& job, Survey const& survey, std::vector<std::string>& found) {
  if (!job.cpus_per_task) return;
  std::string const cpus = counted(*job.cpus_per_task, "CPU");
  auto const& threads = survey.threads_per_rank;
  if (survey.processors_per_rank.least < *job.cpus_per_task) {
    found.push_back(
        fmt::format("Slurm gives {} a task and a rank may run on {} (from Slurm 22.05 on srun does not take "
                    "--cpus-per-task from sbatch); in the batch script, export "
                    "SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK",
                    cpus, survey.processors_per_rank.least));
  }
  if (threads.most > *job.cpus_per_task) {
    found.push_back(fmt::format("a rank has {} and Slurm gives {} a task; export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK",
                                counted(threads.most, "thread"), cpus));
  } else if (threads.least < *job.cpus_per_task / 2) { // half of them is right where a core is two
    found.push_back(fmt::format("a rank has {} and Slurm gives {} a task, of which some are idle; export "
                                "OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK or ask for fewer",
                                counted(threads.least, "thread"), cpus));
  }
}

void compare_memory(SlurmJob const& job, Survey const& survey, std::vector<MemoryRow> const& rank_memory,
                    std::vector<std::string>& found) {
  std::int64_t const planned = survey.ranks_per_host.most * on_host(rank_memory);
  if (!job.memory_per_node_bytes || planned <= *job.memory_per_node_bytes) return;
  found.push_back(fmt::format(
      "Slurm gives {} a node and the {} of a host plan {} beside what the program itself takes; "
      "ask for more (--mem, --mem-per-cpu), or start fewer ranks a node",
      format_bytes(*job.memory_per_node_bytes), counted(survey.ranks_per_host.most, "rank"), format_bytes(planned)));
}

void compare_ends(SlurmJob const& job, RunConfig const& run, Clock::time_point now, std::vector<std::string>& found) {
  if (!job.end || !run.time_limit_s || seconds_from(now, *job.end) >= *run.time_limit_s) return;
  found.push_back(fmt::format("Slurm ends the job before run.time_limit ({} from now, and {}); ask for more (--time), "
                              "or leave the end to Slurm with run.time_limit: none",
                              format_duration(std::max(0.0, seconds_from(now, *job.end))),
                              format_duration(*run.time_limit_s)));
}

} // namespace

std::string describe(SlurmJob const& job, Clock::time_point now) {
  std::string text = fmt::format("Slurm {} in partition {}, {}", job.id, job.partition, counted(job.nodes, "node"));
  if (job.tasks) text += ", " + counted(*job.tasks, "task");
  if (job.tasks && job.cpus_per_task) text += " of " + counted(*job.cpus_per_task, "CPU");
  if (job.memory_per_node_bytes) text += fmt::format(", {} a node", format_bytes(*job.memory_per_node_bytes));
  if (job.end) text += ", ends in " + format_duration(std::max(0.0, seconds_from(now, *job.end)));
  if (job.restarts == 1) text += " (requeued once)";
  if (job.restarts > 1) text += fmt::format(" (requeued {} times)", job.restarts);
  return text;
}

std::vector<std::string> disagreements(SlurmJob const& job, Survey const& survey, RunConfig const& run,
                                       std::vector<MemoryRow> const& rank_memory, Clock::time_point now) {
  std::vector<std::string> found;
  compare_ranks(job, survey, found);
  compare_cpus(job, survey, found);
  compare_memory(job, survey, rank_memory, found);
  compare_ends(job, run, now, found);
  return found;
}

} // namespace kozero
