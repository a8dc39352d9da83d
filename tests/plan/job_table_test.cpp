// What the table at a run's start says of the batch job.
#include "plan/job_table.hpp"

#include "core/memory.hpp"
#include "support/catch.hpp"

using namespace kozero;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t mebibyte = 1 << 20;
auto const now = std::chrono::system_clock::time_point(1800000000s);

/// Two nodes of two tasks, as asked for and as it is; all that follows changes one thing.
struct Start {
  SlurmJob job{.id = "1234",
               .partition = "main",
               .nodes = 2,
               .restarts = 0,
               .tasks = 4,
               .cpus_per_task = 8,
               .memory_per_node_bytes = 1000 * mebibyte,
               .end = now + 2h};
  Survey survey{.ranks = 4,
                .hosts = {"a", "b"},
                .ranks_per_host = {2, 2},
                .threads_per_rank = {8, 8},
                .processors_per_rank = {8, 8},
                .binding = ""};
  RunConfig run;
  std::vector<MemoryRow> memory = {{Space::device, Category::parameters, 300 * mebibyte},
                                   {Space::host, Category::master, 150 * mebibyte},
                                   {Space::pinned, Category::staging, 50 * mebibyte}};

  std::string found() const {
    std::string text;
    for (auto const& line : disagreements(job, survey, run, memory, now)) text += line + "\n";
    return text;
  }
};

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("the row of a job says what was given, and leaves out what is not known") {
  Start start;
  CHECK(describe(start.job, now) == "Slurm 1234 in partition main, 2 nodes, 4 tasks of 8 CPUs, 1000.0 MiB a node, "
                                    "ends in 2h 00m");
  start.job.restarts = 1;
  CHECK(contains(describe(start.job, now + 3h), "ends in 0.0s (requeued once)"));
  start.job.restarts = 3;
  CHECK(contains(describe(start.job, now), "(requeued 3 times)"));
  SlurmJob const bare{.id = "7_2", .partition = "p"};
  CHECK(describe(bare, now) == "Slurm 7_2 in partition p, 1 node");
}

TEST_CASE("a run that takes what its job gives is not warned") {
  CHECK(Start().found() == "");
  Start start;
  start.job = {.id = "1", .partition = "p"};
  start.run.time_limit_s = 1e9;
  CHECK(start.found() == ""); // nothing is known that could disagree
}

TEST_CASE("fewer ranks than tasks are warned of, more are not: mpiexec's helpers count as tasks") {
  Start start;
  start.survey.ranks = 1;
  CHECK(contains(start.found(), "the job has 4 tasks and the run 1 rank ("));
  start.survey.ranks = 8;
  CHECK(start.found() == "");
}

TEST_CASE("threads and processors of a rank are held to the CPUs of a task") {
  Start start;
  start.survey.threads_per_rank = {8, 9};
  CHECK(contains(start.found(), "a rank has 9 threads and Slurm gives 8 CPUs a task; export OMP_NUM_THREADS"));
  start.survey.threads_per_rank = {4, 4}; // one for each core of two processors
  CHECK(start.found() == "");
  start.survey.threads_per_rank = {3, 8};
  CHECK(contains(start.found(), "a rank has 3 threads and Slurm gives 8 CPUs a task, of which some are idle"));
  start = {};
  start.survey.processors_per_rank = {1, 8};
  CHECK(contains(start.found(), "a rank may run on 1 "));
  CHECK(contains(start.found(), "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"));
}

TEST_CASE("memory that the ranks of a host plan is held to that of a node") {
  Start start;
  start.job.memory_per_node_bytes = 2 * (300 + 150 + 50) * mebibyte;
  CHECK(start.found() == "");
  start.job.memory_per_node_bytes = *start.job.memory_per_node_bytes - 1;
  bool const device_is_host = host_reaches_device;
  CHECK(contains(start.found(), "the 2 ranks of a host plan 1000.0 MiB") == device_is_host);
  start.job.memory_per_node_bytes = 399 * mebibyte;
  CHECK(contains(start.found(), "Slurm gives 399.0 MiB a node and the 2 ranks of a host plan"));
}

TEST_CASE("a time limit after the end of the job is warned of") {
  Start start;
  start.run.time_limit_s = 7199;
  CHECK(start.found() == "");
  start.run.time_limit_s = 7201;
  CHECK(contains(start.found(), "Slurm ends the job before run.time_limit (2h 00m from now, and 2h 00m)"));
}
