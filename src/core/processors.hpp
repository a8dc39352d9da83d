#pragma once
#include <bitset>
#include <vector>

namespace kozero {

/// A set of processors (hardware threads) of one host, by the number that the system gives them.
using ProcessorMask = std::bitset<1024>;

/// Those that this process may run on.
ProcessorMask allowed_processors();

/// Lets the calling thread run wherever any thread of this process may. A thread that OpenMP has bound to a processor
/// (OMP_PROC_BIND) hands that on to those that it starts, which would take turns with it.
void run_on_all_processors() noexcept;

/// How many threads rank `me` of a host should run, given the masks of all its ranks: every processor is divided among
/// the ranks that may run on it. So ranks that the launcher bound apart keep all of theirs, unbound ones share the
/// host, and ranks bound to a socket share the socket. At least 1.
int thread_share(std::vector<ProcessorMask> const& masks, int me);

} // namespace kozero
