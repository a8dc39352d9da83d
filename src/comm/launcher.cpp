#include "comm/launcher.hpp"

#include "core/error.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace kozero {

namespace {

// A variable with the number of processes that a launcher started, and what to do when MPI sees fewer.
struct Launcher {
  char const* variable;
  char const* name;
  char const* advice;
};

// For Slurm it is the number of tasks of the step, not SLURM_NTASKS: that one is also set in the shell of salloc and in
// a batch script, where a plain `kozero` is one process and rightly so. Only srun sets SLURM_STEP_NUM_TASKS; where the
// shell itself is a step (salloc's interactive step) it is 1. mpiexec starts its helpers by srun, one a host, so that
// ranks inherit the number of hosts: less than or equal to what MPI sees.
constexpr Launcher launchers[] = {
    {"SLURM_STEP_NUM_TASKS", "Slurm's srun", "use srun --mpi=pmi2 (srun --mpi=list shows what there is) or mpiexec"},
    {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpiexec", "use the mpiexec of the MPI library that kozero was built with"},
    {"PMI_SIZE", "mpiexec", "use the mpiexec of the MPI library that kozero was built with"},
};

// 1 where the variable is absent or no number.
int tasks_of(Launcher const& launcher, EnvironmentLookup const& lookup) {
  char const* value = lookup(launcher.variable);
  if (value == nullptr) return 1;
  std::string_view const text = value;
  int tasks = 1;
  auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), tasks);
  return fault == std::errc() && end == text.data() + text.size() ? tasks : 1;
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

void require_launcher_agrees(int mpi_size) {
  require_launcher_agrees(mpi_size, [](char const* name) -> char const* { return std::getenv(name); });
}

} // namespace kozero
