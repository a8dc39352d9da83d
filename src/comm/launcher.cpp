#include "comm/launcher.hpp"

#include "core/error.hpp"

#include <utility>

namespace kozero {

namespace {

// Variables with the number of processes that a launcher started and with the process' own number, and what to do when
// MPI sees fewer.
struct Launcher {
  char const* variable;
  char const* rank_variable;
  char const* name;
  char const* advice;
};

// For Slurm it is the number of tasks of the step, not SLURM_NTASKS: that one is also set in the shell of salloc and in
// a batch script, where a plain `kozero` is one process and rightly so. Only srun sets SLURM_STEP_NUM_TASKS; where the
// shell itself is a step (salloc's interactive step) it is 1. mpiexec starts its helpers by srun, one a host, so that
// ranks inherit the number of hosts: less than or equal to what MPI sees.
constexpr Launcher launchers[] = {
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "Slurm's srun",
     "use srun --mpi=pmi2 (srun --mpi=list shows what there is) or mpiexec"},
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpiexec",
     "use the mpiexec of the MPI library that kozero was built with"},
    {"PMI_SIZE", "PMI_RANK", "mpiexec", "use the mpiexec of the MPI library that kozero was built with"},
};

int number_of(char const* variable, EnvironmentLookup const& lookup, int otherwise) {
  std::int64_t const number = number_in(lookup, variable).value_or(otherwise);
  return std::in_range<int>(number) ? static_cast<int>(number) : otherwise;
}

int tasks_of(Launcher const& launcher, EnvironmentLookup const& lookup) {
  return number_of(launcher.variable, lookup, 1);
}

} // namespace

void require_launcher_agrees(int mpi_size, EnvironmentLookup const& lookup) {
  for (Launcher const& launcher : launchers) {
    int const tasks = tasks_of(launcher, lookup);
    KOZERO_REQUIRE(tasks <= mpi_size,
                   "{} started {} processes but MPI sees {} ({}={}: the launcher does not speak this MPI library's "
                   "language, so each process would be a run of its own); {}",
                   launcher.name, tasks, mpi_size, launcher.variable, tasks, launcher.advice);
  }
}

void require_launcher_agrees(int mpi_size) { require_launcher_agrees(mpi_size, process_environment); }

LaunchedProcess launched_process(EnvironmentLookup const& lookup) {
  LaunchedProcess process;
  for (Launcher const& launcher : launchers) {
    int const tasks = tasks_of(launcher, lookup);
    if (tasks <= process.count) continue; // the helpers of one that itself started more
    process = {tasks, number_of(launcher.rank_variable, lookup, 0), launcher.name};
  }
  return process;
}

LaunchedProcess launched_process() { return launched_process(process_environment); }

} // namespace kozero
