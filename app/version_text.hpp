#pragma once
#include <string>

namespace kozero {

/// What --version prints: kozero's own in the first line, then backend, libraries, and where there is an accelerator a
/// table of what the program was built with and what is here. Needs neither MPI, Kokkos nor a device.
std::string version_text();

} // namespace kozero
