#include "comm/fake_environment.hpp"
#include "comm/launcher.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

#include <string>

using namespace kozero;
using namespace kozero::test;

namespace {

// The message, or nothing where the launcher agrees.
std::string complaint(int mpi_size, Environment const& environment) {
  try {
    require_launcher_agrees(mpi_size, lookup_in(environment));
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("srun without this MPI's language is an error that says what to do") {
  std::string const message = complaint(
      1, {{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}});
  CHECK(contains(message, "started 4 processes but MPI sees 1"));
  CHECK(contains(message, "use srun --mpi=pmi2"));
  CHECK(contains(message, "mpiexec"));
}

TEST_CASE("one process in a shell or batch script of an allocation of many tasks is right") {
  CHECK(complaint(1, {}) == "");
  CHECK(complaint(1, {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}}) == "");                                 // salloc
  CHECK(complaint(1, {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}) == "");          // sbatch
  CHECK(complaint(1, {{"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}) == ""); // a step
}

TEST_CASE("a launcher that started as many processes as MPI sees, or one helper a host, is right") {
  CHECK(complaint(4, {{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}}) == "");
  CHECK(complaint(8, {{"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_SIZE", "8"}}) == "");
}

TEST_CASE("the mpiexec of another MPI is noticed, too") {
  CHECK(contains(complaint(1, {{"OMPI_COMM_WORLD_SIZE", "2"}}), "Open MPI"));
  CHECK(contains(complaint(1, {{"PMI_SIZE", "3"}}), "started 3 processes"));
}

TEST_CASE("variables that are no numbers are passed over") {
  CHECK(complaint(1, {{"SLURM_STEP_NUM_TASKS", ""}, {"PMI_SIZE", "4x"}}) == "");
}

TEST_CASE("a launcher's variables say how many processes there are, and which this is") {
  auto const told = [](Environment const& environment) {
    LaunchedProcess const process = launched_process(lookup_in(environment));
    return std::to_string(process.rank) + " of " + std::to_string(process.count) + " by " + process.launcher;
  };
  CHECK(told({}) == "0 of 1 by ");
  CHECK(told({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}) == "0 of 1 by "); // a batch script
  CHECK(told({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}) == "0 of 1 by ");
  CHECK(told({{"PMI_SIZE", "3"}, {"PMI_RANK", "2"}}) == "2 of 3 by mpiexec");
  CHECK(told({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}}) == "1 of 2 by Open MPI's mpiexec");
  CHECK(told({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}}) == "3 of 4 by Slurm's srun");
  // Helpers, one a host, that started the processes.
  CHECK(told({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}, {"PMI_SIZE", "8"}, {"PMI_RANK", "3"}}) ==
        "3 of 8 by mpiexec");
}

TEST_CASE("this very process was started rightly") { CHECK_NOTHROW(require_launcher_agrees(1)); }
