#include "comm/mpi_ranks.hpp"

#include "comm/mpi_calls.hpp"
#include "comm/mpi_collectives.hpp"
#include "comm/self_ranks.hpp"
#include "core/error.hpp"
#include "core/heartbeat.hpp"
#include "core/memory.hpp"
#include "core/open_memory.hpp"
#include "core/profile.hpp"

#if __has_include(<mpi-ext.h>) // Open MPI's
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <utility>

namespace kozero {

namespace {

MPI_Comm duplicate_of_world() {
  MPI_Comm handle = MPI_COMM_NULL;
  KOZERO_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &handle);
  return handle;
}

void wait_for(MPI_Request request) {
  HostSpan const waits("wait", "ranks");
  int complete = 0;
  wait_until([&] {
    KOZERO_MPI(MPI_Test, &request, &complete, MPI_STATUS_IGNORE);
    return complete != 0;
  });
}

int count_of(std::span<std::byte const> bytes) {
  KOZERO_ASSERT(std::in_range<int>(bytes.size()));
  return static_cast<int>(bytes.size());
}

} // namespace

bool mpi_reaches_devices() {
  if (!KOZERO_HAS_ACCELERATOR) return host_reaches_device; // no library knows of the emulated device
  int reaches = 0;
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  reaches = MPIX_Query_cuda_support();
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &reaches);
#endif
  return reaches != 0;
}

std::unique_ptr<Ranks> make_world_ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1) return std::make_unique<SelfRanks>();
  return std::make_unique<MpiRanks>();
}

MpiRanks::MpiRanks() : MpiRanks(std::make_unique<Communicator>(duplicate_of_world())) {}
MpiRanks::MpiRanks(std::unique_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
MpiRanks::~MpiRanks() = default;

int MpiRanks::rank() const { return communicator_->rank; }
int MpiRanks::size() const { return communicator_->size; }

std::string MpiRanks::description() const {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  KOZERO_MPI(MPI_Get_library_version, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  // "MPICH Version:\t4.0.2\nMPICH Release date:…", "Open MPI v4.1.4, package: …"
  text = text.substr(0, text.find_first_of(",\n"));
  std::string const noise = " Version:";
  if (auto const found = text.find(noise); found != std::string::npos) text.erase(found, noise.size());
  std::replace(text.begin(), text.end(), '\t', ' ');
  return fmt::format("MPI ({})", text.substr(0, text.find('\0')));
}

void MpiRanks::barrier() {
  heartbeat().reach("barrier");
  MPI_Request request = MPI_REQUEST_NULL;
  KOZERO_MPI(MPI_Ibarrier, communicator_->handle, &request);
  wait_for(request);
}

std::unique_ptr<Ranks> MpiRanks::split(std::vector<int> const& members) {
  auto const self = std::ranges::find(members, rank());
  KOZERO_ASSERT(self != members.end());
  heartbeat().reach("split");
  MPI_Comm handle = MPI_COMM_NULL;
  {
    Heartbeat::Wait const wait;
    KOZERO_MPI(MPI_Comm_split, communicator_->handle, members.front(), static_cast<int>(self - members.begin()),
               &handle);
  }
  auto communicator = std::make_unique<Communicator>(handle);
  KOZERO_REQUIRE(communicator->size == static_cast<int>(members.size()),
                 "a group of {} ranks has {} members (ranks disagree on who they are: a fault of kozero); please "
                 "report it",
                 members.size(), communicator->size);
  if (communicator->size == 1) return std::make_unique<SelfRanks>();
  return std::make_unique<MpiRanks>(std::move(communicator));
}

std::unique_ptr<Collectives> MpiRanks::make_collectives(Ledger& ledger) {
  return std::make_unique<MpiCollectives>(*this, ledger);
}

void MpiRanks::exchange_messages(std::span<Outgoing const> sends, std::span<Incoming const> receives) {
  auto& requests = communicator_->exchanged;
  for (auto const& [from, bytes] : receives) {
    require_open(bytes.data(), count_of(bytes), "MPI_Irecv", LibraryUse::writes);
    KOZERO_MPI(MPI_Irecv, bytes.data(), count_of(bytes), MPI_BYTE, from, exchange_tag, communicator_->handle,
               &requests.emplace_back(MPI_REQUEST_NULL));
  }
  for (auto const& [to, bytes] : sends) {
    require_open(bytes.data(), count_of(bytes), "MPI_Isend", LibraryUse::reads);
    KOZERO_MPI(MPI_Isend, bytes.data(), count_of(bytes), MPI_BYTE, to, exchange_tag, communicator_->handle,
               &requests.emplace_back(MPI_REQUEST_NULL));
  }
  HostSpan const waits("wait", "ranks");
  wait_for_all(requests);
}

void MpiRanks::gather_parts(std::span<std::byte> all) {
  heartbeat().reach("gather", "values");
  MPI_Request request = MPI_REQUEST_NULL;
  int const part = count_of(all) / size();
  KOZERO_MPI(MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), part, MPI_BYTE, communicator_->handle,
             &request);
  wait_for(request);
}

void MpiRanks::broadcast_bytes(std::span<std::byte> bytes, int root) {
  heartbeat().reach("broadcast", "values");
  MPI_Request request = MPI_REQUEST_NULL;
  KOZERO_MPI(MPI_Ibcast, bytes.data(), count_of(bytes), MPI_BYTE, root, communicator_->handle, &request);
  wait_for(request);
}

} // namespace kozero
