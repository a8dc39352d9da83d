#pragma once
#include "comm/environment.hpp"

#include <string>

namespace kozero {

/// An Error when a launcher started more processes than MPI sees ranks: then each of them is a run of its own, and all
/// write to the same folder. That is what happens when the launcher and the MPI library do not speak to each other.
void require_launcher_agrees(int mpi_size, EnvironmentLookup const& lookup);

/// With this process' environment.
void require_launcher_agrees(int mpi_size);

/// What a launcher has told a process in its environment; no MPI is needed to read it.
struct LaunchedProcess {
  int count = 1;        // processes that it started together
  int rank = 0;         // this one among them
  std::string launcher; // "mpiexec"; empty where the process is alone
};
LaunchedProcess launched_process(EnvironmentLookup const& lookup);

/// With this process' environment.
LaunchedProcess launched_process();

} // namespace kozero
