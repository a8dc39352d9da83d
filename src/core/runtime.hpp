#pragma once

namespace kozero {

/// MPI, then Kokkos, up; in reverse order down. Lives in main's outermost scope; every View dies before it.
///
/// Without OMP_NUM_THREADS the processors that the ranks of a host may use are divided among them (thread_share).
///
/// A rank that fails while they come up tells why and ends all ranks. KOZERO_HOST_TARGET is read here.
///
/// Finalising MPI waits for all ranks, so while an exception unwinds the destructor leaves everything up; whoever
/// catches it prints the cause and calls abort().
class Runtime {
public:
  Runtime(int& argc, char**& argv);
  ~Runtime();
  Runtime(Runtime const&) = delete;
  Runtime& operator=(Runtime const&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// Ends all ranks at once: none waits for this one. Does not return.
  [[noreturn]] static void abort(int exit_code);

private:
  void start() const;

  int rank_ = 0;
  int ranks_ = 1;
};

} // namespace kozero
