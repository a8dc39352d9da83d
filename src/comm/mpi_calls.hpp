#pragma once
// What the files that call MPI have in common. No other header includes MPI's.

#include "comm/mpi_ranks.hpp"
#include "core/dtype.hpp"

#include <mpi.h>

#include <functional>
#include <vector>

namespace kozero {

/// An Error that names the call, unless it did well.
void check_mpi(int code, char const* call);

// Every MPI call whose failure has a meaning goes through one of these. MPI 4 counts in 64 bits by calls of their own.
#define KOZERO_MPI(call, ...) ::kozero::check_mpi(call(__VA_ARGS__), #call)
#if MPI_VERSION >= 4
#define KOZERO_MPI_COUNTED(call, ...) ::kozero::check_mpi(call##_c(__VA_ARGS__), #call "_c")
using MpiCount = MPI_Count;
using MpiDisplacement = MPI_Aint;
#else
#define KOZERO_MPI_COUNTED(call, ...) KOZERO_MPI(call, __VA_ARGS__)
using MpiCount = int;
using MpiDisplacement = int;
#endif

/// Owns a communicator whose errors come back as codes.
struct MpiRanks::Communicator {
  explicit Communicator(MPI_Comm handle);
  ~Communicator();
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;

  MPI_Comm handle = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  std::vector<MPI_Request> exchanged; // in the exchange of messages that is under way
};

/// Tags of messages between two ranks: what Ranks::exchange was given, and from first_collective_tag on what
/// collectives move.
constexpr int exchange_tag = 0;
constexpr int first_collective_tag = 1;

MPI_Datatype mpi_type(DType type);

/// Whether all have come and left; then the list is empty. Does not wait.
bool all_complete(std::vector<MPI_Request>& requests);
/// Waits until it is true, for messages. Lets other processes have the processor meanwhile: MPI libraries poll, and
/// where ranks outnumber processors each message would cost the rest of a time slice. And gets on with all collectives
/// that are under way: another rank may need these to come where this one waits for it.
void wait_until(std::function<bool()> const& reached);
/// Whether the host is within wait_until: what comes now has been waited for.
bool is_waiting();
void wait_for_all(std::vector<MPI_Request>& requests);

} // namespace kozero
