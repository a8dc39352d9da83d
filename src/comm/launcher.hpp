#pragma once
#include <functional>

namespace kozero {

/// Like std::getenv.
using EnvironmentLookup = std::function<char const*(char const* name)>;

/// An Error when a launcher started more processes than MPI sees ranks: then each of them is a run of its own, and all
/// write to the same folder. That is what happens when the launcher and the MPI library do not speak to each other.
void require_launcher_agrees(int mpi_size, EnvironmentLookup const& lookup);

/// With this process' environment.
void require_launcher_agrees(int mpi_size);

} // namespace kozero
