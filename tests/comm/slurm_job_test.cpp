#include "comm/fake_environment.hpp"
#include "comm/slurm_job.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

#include <string>

using namespace kozero;
using namespace kozero::test;

namespace {

SlurmJob job_in(Environment environment) {
  environment.emplace("SLURM_JOB_ID", "1234");
  auto const job = slurm_job(lookup_in(environment));
  REQUIRE(job);
  return *job;
}

// In seconds since 1970; -1 where there is none.
std::int64_t end_in(Environment const& environment) {
  auto const end = job_end(lookup_in(environment));
  return end ? std::chrono::duration_cast<std::chrono::seconds>(end->time_since_epoch()).count() : -1;
}

} // namespace

TEST_CASE("outside of a job there is none") {
  CHECK(!slurm_job(lookup_in({})));
  CHECK(!slurm_job(lookup_in({{"SLURM_CONF", "/etc/slurm/slurm.conf"}, {"SLURM_CPUS_PER_TASK", "2"}})));
}

TEST_CASE("a job that says no more than its id has one node, was never requeued, and nothing else is known of it") {
  SlurmJob const job = job_in({});
  CHECK(job.id == "1234");
  CHECK(job.nodes == 1);
  CHECK(job.restarts == 0);
  CHECK(!job.tasks);
  CHECK(!job.cpus_per_task);
  CHECK(!job.memory_per_node_bytes);
  CHECK(!job.end);
}

// As srun of Slurm 22.05 sets them on two nodes.
TEST_CASE("a step's variables are read") {
  SlurmJob const job = job_in({{"SLURM_JOB_PARTITION", "main"},
                               {"SLURM_JOB_NUM_NODES", "2"},
                               {"SLURM_NTASKS", "6"},
                               {"SLURM_CPUS_PER_TASK", "8"},
                               {"SLURM_MEM_PER_NODE", "4000"},
                               {"SLURM_RESTART_COUNT", "3"}});
  CHECK(job.partition == "main");
  CHECK(job.nodes == 2);
  CHECK(job.tasks == 6);
  CHECK(job.cpus_per_task == 8);
  CHECK(job.memory_per_node_bytes == std::int64_t{4000} * 1024 * 1024);
  CHECK(job.restarts == 3);
}

TEST_CASE("a task of an array is named as squeue names it") {
  CHECK(job_in({{"SLURM_ARRAY_JOB_ID", "1230"}, {"SLURM_ARRAY_TASK_ID", "7"}}).id == "1230_7");
}

TEST_CASE("memory a CPU counts for the CPUs of the node; all of a node's is no number") {
  CHECK(job_in({{"SLURM_MEM_PER_CPU", "100"}, {"SLURM_CPUS_ON_NODE", "3"}}).memory_per_node_bytes ==
        std::int64_t{300} * 1024 * 1024);
  CHECK(!job_in({{"SLURM_MEM_PER_CPU", "100"}}).memory_per_node_bytes);
  CHECK(!job_in({{"SLURM_MEM_PER_NODE", "0"}}).memory_per_node_bytes);
}

TEST_CASE("the end of the job is the batch script's word, then Slurm's") {
  CHECK(end_in({}) == -1);
  CHECK(end_in({{"SLURM_JOB_END_TIME", "1800000000"}}) == 1800000000);
  CHECK(end_in({{"SLURM_JOB_END_TIME", "1800000000"}, {"KOZERO_JOB_END", "1700000000"}}) == 1700000000);
  CHECK(end_in({{"SLURM_JOB_END_TIME", "1800000000"}, {"KOZERO_JOB_END", ""}}) == 1800000000);
  CHECK(end_in({{"SLURM_JOB_END_TIME", "never"}}) == -1);
  CHECK(job_in({{"KOZERO_JOB_END", "1700000000"}}).end == job_end(lookup_in({{"KOZERO_JOB_END", "1700000000"}})));
}

TEST_CASE("a batch script's end of the job that is no time is refused, not passed over") {
  for (std::string const wrong : {"2026-11-30T08:58:02", "17000000 00", "-5", "9223372036854775807"}) {
    INFO(wrong);
    CHECK_THROWS_AS(end_in({{"KOZERO_JOB_END", wrong}}), InputError);
  }
}
