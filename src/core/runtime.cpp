#include "core/runtime.hpp"

#include "core/device.hpp"
#include "core/error.hpp"
#include "core/host_simd.hpp"
#include "core/kokkos.hpp"
#include "core/processors.hpp"

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace kozero {

namespace {

// The masks of this host's ranks, by their rank there.
struct HostMasks {
  std::vector<ProcessorMask> masks;
  int rank_on_host = 0;
};

HostMasks gather_host_masks(int rank) {
  static_assert(std::is_trivially_copyable_v<ProcessorMask>);
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  HostMasks result;
  int ranks_on_host = 1;
  MPI_Comm_rank(host, &result.rank_on_host);
  MPI_Comm_size(host, &ranks_on_host);
  result.masks.resize(static_cast<std::size_t>(ranks_on_host));
  ProcessorMask const mine = allowed_processors();
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, result.masks.data(), sizeof mine, MPI_BYTE, host);
  MPI_Comm_free(&host);
  return result;
}

// Zero threads: as OpenMP's environment says.
void start_kokkos(int threads, int ranks_on_host) {
  // Kokkos asks for OMP_PROC_BIND; binding is the launcher's business here, and several ranks on one host that each
  // bind for themselves end on the same cores.
  setenv("OMP_PROC_BIND", "false", 0);
#if KOKKOS_VERSION >= 30700
  Kokkos::InitializationSettings settings;
  if (threads > 0) settings.set_num_threads(threads);
  // Kokkos does so by itself, but says so if it cannot tell the ranks of a host apart only when asked for it.
  if (ranks_on_host > 1) settings.set_map_device_id_by("mpi_rank");
#else
  Kokkos::InitArguments settings;
  if (threads > 0) settings.num_threads = threads;
  settings.disable_warnings = true;
  static_cast<void>(ranks_on_host);
#endif
  Kokkos::initialize(settings);
}

} // namespace

Runtime::Runtime(int& argc, char**& argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  try {
    KOZERO_REQUIRE(provided >= MPI_THREAD_FUNNELED,
                   "MPI gives no thread support (level {}); use an MPI built with MPI_THREAD_FUNNELED", provided);
    start();
  } catch (std::exception const& error) {
    if (ranks_ == 1) throw;
    // The others may be in a collective, and would wait for this rank.
    std::array<char, MPI_MAX_PROCESSOR_NAME> host = {};
    int length = 0;
    MPI_Get_processor_name(host.data(), &length);
    std::fprintf(stderr, "kozero: rank %d on host %s: %s\n", rank_, host.data(), error.what());
    abort(exit_failed);
  }
}

void Runtime::start() const {
  set_host_target_from_environment();
  require_device();
  HostMasks const host = gather_host_masks(rank_);
  start_kokkos(std::getenv("OMP_NUM_THREADS") ? 0 : thread_share(host.masks, host.rank_on_host),
               static_cast<int>(host.masks.size()));
}

Runtime::~Runtime() {
  if (std::uncaught_exceptions() > 0) return;
  Kokkos::finalize();
  MPI_Finalize();
}

void Runtime::abort(int exit_code) {
  std::fflush(nullptr);
  int up = 0;
  int down = 0;
  MPI_Initialized(&up);
  MPI_Finalized(&down);
  if (up && !down) {
    // MPICH's launcher may end before it has passed on what was just written, and with it the cause would be lost.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }
  std::_Exit(exit_code);
}

} // namespace kozero
