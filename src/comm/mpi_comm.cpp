#include "comm/mpi_comm.hpp"

#include "comm/tree_sum.hpp"
#include "core/launch.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <utility>

namespace kozero {

namespace {

void check(int code, char const* call) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw Error(fmt::format("{} failed ({}); look for the first rank that failed, and check the network and the nodes of "
                          "the job",
                          call, text));
}

// Every MPI call whose failure has a meaning goes through one of these. MPI 4 counts in 64 bits by calls of their own.
#define KOZERO_MPI(call, ...) check(call(__VA_ARGS__), #call)
#if MPI_VERSION >= 4
#define KOZERO_MPI_COUNTED(call, ...) check(call##_c(__VA_ARGS__), #call "_c")
using Count = MPI_Count;
using Displacement = MPI_Aint;
#else
#define KOZERO_MPI_COUNTED(call, ...) KOZERO_MPI(call, __VA_ARGS__)
using Count = int;
using Displacement = int;
#endif

// Messages between two ranks: what a sum over ranks exchanges, and what exchange() was given.
constexpr int sum_tag = 1;
constexpr int exchange_tag = 2;

// Waits as MPI_Waitall does, but lets other processes have the processor meanwhile: MPI libraries poll, and where ranks
// outnumber processors each message would cost the rest of a time slice.
void wait_for_all(std::vector<MPI_Request>& requests) {
  int done = 0;
  while (true) {
    KOZERO_MPI(MPI_Testall, static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done) break;
    sched_yield();
  }
  requests.clear();
}

void wait_for(MPI_Request request) {
  std::vector<MPI_Request> requests{request};
  wait_for_all(requests);
}

MPI_Datatype mpi_type(DType type) {
  switch (type) {
  case DType::f32: return MPI_FLOAT;
  case DType::bf16:
  case DType::f16: return MPI_UINT16_T;
  case DType::f64: return MPI_DOUBLE;
  case DType::i64: return MPI_INT64_T;
  case DType::i32: return MPI_INT32_T;
  case DType::u8: return MPI_BYTE;
  }
  return MPI_DATATYPE_NULL;
}

void require_countable(std::int64_t elements) {
  KOZERO_REQUIRE(std::in_range<Count>(elements),
                 "a block of the model has {} elements and the MPI library counts to {} (it is older than MPI 4); use "
                 "an MPI 4 library",
                 elements, std::numeric_limits<Count>::max());
}

unsigned char* at(Span const& span, std::int64_t element) {
  return static_cast<unsigned char*>(span.data) + element * size_of(span.type);
}

// A piece of every rank's interval: where it lies in an array, by rank.
struct Pieces {
  std::vector<Count> counts;
  std::vector<Displacement> begins;
  void add(std::int64_t begin, std::int64_t count) {
    counts.push_back(static_cast<Count>(count));
    begins.push_back(static_cast<Displacement>(begin));
  }
};

// An all_gather under way. MPI reads the pieces until it is complete.
class Gather final : public Pending::Work {
public:
  Gather(MPI_Comm comm, Span const& whole, Partition const& partition) {
    require_countable(partition.size());
    for (int r = 0; r < partition.ranks(); ++r) pieces_.add(partition.shard(r).begin, partition.shard(r).size());
    KOZERO_MPI_COUNTED(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole.data, pieces_.counts.data(),
                       pieces_.begins.data(), mpi_type(whole.type), comm, &request_);
  }
  void finish(Lane const&) override { wait_for(request_); }

private:
  Pieces pieces_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

void copy_to_host(Lane const& lane, unsigned char* to, unsigned char* from, std::int64_t bytes) {
  copy(lane, on_pinned(to), on_device(from), bytes);
}

void copy_to_device(Lane const& lane, unsigned char* to, unsigned char* from, std::int64_t bytes) {
  copy(lane, on_device(to), on_pinned(from), bytes);
}

// The part of a shard that the given round moves, if each moves `length` elements of every shard.
Interval part_of(Interval shard, std::int64_t round, std::int64_t length) {
  return intersect({shard.begin + round * length, shard.begin + (round + 1) * length}, shard);
}

// No shard is longer than the first one, so all ranks count the same rounds.
std::int64_t rounds_of(Partition const& partition, std::int64_t length) {
  return (partition.shard(0).size() + length - 1) / length;
}

} // namespace

struct MpiComm::Impl {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  MpiCommOptions options;
  PinnedBuffer<unsigned char> staging;

  bool stages(Span const& span) const {
    return span.space == Space::device && options.device == MpiCommOptions::DeviceMemory::staged;
  }

  // Elements of every rank's shard that fit when the staging memory is cut into `regions`.
  std::int64_t part_length(DType type, int regions) const { return staging.size() / regions / size / size_of(type); }
  unsigned char* region(int number, int regions) const { return staging.data() + staging.size() / regions * number; }

  void gather_staged(Lane const& lane, Span const& whole, Partition const& partition);
};

namespace {

// A reduce_scatter: round k sends the k-th part of every other rank's shard to it and sums those parts of the own
// shard that arrive. Two rounds may be under way, each in its half of the staging memory.
class Exchange {
public:
  Exchange(MPI_Comm comm, int rank, Lane const& lane, Span const& whole, Partition const& partition, bool staged,
           std::int64_t part_length)
      : comm_(comm), rank_(rank), lane_(lane), whole_(whole), partition_(partition), staged_(staged),
        part_length_(part_length) {}

  // Memory of a round for what comes in, a piece from every rank, and if staged for what goes out.
  struct Slot {
    unsigned char* in = nullptr;
    unsigned char* out = nullptr;
  };

  void start(std::int64_t round, Slot const& slot) {
    if (staged_) {
      for (int r = 0; r < partition_.ranks(); ++r) {
        Interval const part = part_of(partition_.shard(r), round, part_length_);
        copy_to_host(lane_, piece_in(slot.out, r), at(whole_, part.begin), part.size() * size_of(whole_.type));
      }
      lane_.fence("messages");
    }
    auto& requests = requests_[round % 2];
    Interval const own = part_of(partition_.shard(rank_), round, part_length_);
    for (int step = 1; step < partition_.ranks(); ++step) {
      int const from = (rank_ - step + partition_.ranks()) % partition_.ranks();
      if (own.empty()) break;
      KOZERO_MPI(MPI_Irecv, piece_in(slot.in, from), static_cast<int>(own.size()), mpi_type(whole_.type), from, sum_tag,
                 comm_, &requests.emplace_back(MPI_REQUEST_NULL));
    }
    for (int step = 1; step < partition_.ranks(); ++step) {
      int const to = (rank_ + step) % partition_.ranks();
      Interval const part = part_of(partition_.shard(to), round, part_length_);
      if (part.empty()) continue;
      KOZERO_MPI(MPI_Isend, addend(slot, to, part), static_cast<int>(part.size()), mpi_type(whole_.type), to, sum_tag,
                 comm_, &requests.emplace_back(MPI_REQUEST_NULL));
    }
  }

  void finish(std::int64_t round, Slot const& slot) {
    wait_for_all(requests_[round % 2]);
    Interval const own = part_of(partition_.shard(rank_), round, part_length_);
    std::vector<void const*> pieces;
    for (int r = 0; r < partition_.ranks(); ++r) {
      pieces.push_back(r == rank_ ? addend(slot, r, own) : piece_in(slot.in, r));
    }
    tree_sum(whole_.type, pieces, own.size(), addend(slot, rank_, own));
    if (staged_) {
      copy_to_device(lane_, at(whole_, own.begin), piece_in(slot.out, rank_), own.size() * size_of(whole_.type));
    }
  }

private:
  // Where the piece from or for a rank lies in a half of a slot.
  unsigned char* piece_in(unsigned char* memory, int rank) const {
    return memory + rank * part_length_ * size_of(whole_.type);
  }
  // Where the host finds this rank's addends of a part.
  unsigned char* addend(Slot const& slot, int rank, Interval part) const {
    return staged_ ? piece_in(slot.out, rank) : at(whole_, part.begin);
  }

  MPI_Comm comm_;
  int rank_;
  Lane const& lane_;
  Span whole_;
  Partition partition_;
  bool staged_;
  std::int64_t part_length_;
  std::array<std::vector<MPI_Request>, 2> requests_;
};

} // namespace

PinnedBuffer<unsigned char> staging_memory(Ledger& ledger, MpiCommOptions const& options, int ranks) {
  // Four regions at the most, each of a whole number of the largest elements for every rank. One message counts in int.
  std::int64_t const unit = std::int64_t{4} * 8 * ranks;
  std::int64_t const bytes = options.staging_bytes / unit * unit;
  KOZERO_REQUIRE(bytes > 0 && bytes <= std::numeric_limits<int>::max(),
                 "{} bytes of staging memory do not serve {} ranks (they need at least {}, and at the most 2 GiB); use "
                 "another size",
                 options.staging_bytes, ranks, unit);
  return {ledger, Category::staging, "messages", bytes, PinnedBuffer<unsigned char>::Init::none};
}

MpiComm::MpiComm(Ledger& ledger, MpiCommOptions const& options) : impl_(std::make_unique<Impl>()) {
  KOZERO_REQUIRE(host_reaches_device || options.device == MpiCommOptions::DeviceMemory::staged,
                 "sums over ranks are made on the host (which does not reach this device's memory); stage it");
  KOZERO_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &impl_->comm);
  KOZERO_MPI(MPI_Comm_set_errhandler, impl_->comm, MPI_ERRORS_RETURN);
  KOZERO_MPI(MPI_Comm_rank, impl_->comm, &impl_->rank);
  KOZERO_MPI(MPI_Comm_size, impl_->comm, &impl_->size);
  impl_->options = options;
  impl_->staging = staging_memory(ledger, options, impl_->size);
}

MpiComm::~MpiComm() {
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&impl_->comm);
}

int MpiComm::rank() const { return impl_->rank; }
int MpiComm::size() const { return impl_->size; }

std::string MpiComm::description() const {
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

Pending MpiComm::all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == size() && whole.count >= partition.size());
  traffic().add(purpose, partition.size() - partition.shard(rank()).size(), size_of(whole.type));
  if (impl_->stages(whole)) {
    impl_->gather_staged(lane, whole, partition);
    return {};
  }
  if (whole.space != Space::host) lane.fence("messages");
  return Pending(std::make_unique<Gather>(impl_->comm, whole, partition));
}

void MpiComm::Impl::gather_staged(Lane const& lane, Span const& whole, Partition const& partition) {
  std::int64_t const length = part_length(whole.type, 1);
  std::int64_t const element_bytes = size_of(whole.type);
  auto const staged = [&](int r) { return staging.data() + r * length * element_bytes; };
  for (std::int64_t round = 0; round < rounds_of(partition, length); ++round) {
    Pieces pieces;
    for (int r = 0; r < size; ++r) pieces.add(r * length, part_of(partition.shard(r), round, length).size());
    Interval const own = part_of(partition.shard(rank), round, length);
    copy_to_host(lane, staged(rank), at(whole, own.begin), own.size() * element_bytes);
    lane.fence("messages");
    MPI_Request request = MPI_REQUEST_NULL;
    KOZERO_MPI_COUNTED(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, staging.data(), pieces.counts.data(),
                       pieces.begins.data(), mpi_type(whole.type), comm, &request);
    wait_for(request);
    for (int r = 0; r < size; ++r) {
      Interval const part = part_of(partition.shard(r), round, length);
      if (r != rank) copy_to_device(lane, at(whole, part.begin), staged(r), part.size() * element_bytes);
    }
  }
  lane.fence("messages");
}

Pending MpiComm::reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == size() && whole.count >= partition.size());
  traffic().add(purpose, (size() - 1) * partition.shard(rank()).size(), size_of(whole.type));
  bool const staged = impl_->stages(whole);
  if (whole.space != Space::host) lane.fence("messages");
  int const regions = staged ? 4 : 2;
  std::int64_t const length = impl_->part_length(whole.type, regions);
  Exchange exchange(impl_->comm, rank(), lane, whole, partition, staged, length);
  auto const slot = [&](std::int64_t round) {
    int const half = static_cast<int>(round % 2);
    return Exchange::Slot{impl_->region(half, regions), staged ? impl_->region(2 + half, regions) : nullptr};
  };
  std::int64_t const rounds = rounds_of(partition, length);
  if (rounds > 0) exchange.start(0, slot(0));
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (round + 1 < rounds) exchange.start(round + 1, slot(round + 1));
    exchange.finish(round, slot(round));
  }
  if (staged) lane.fence("messages"); // the staging memory is free again
  return {};
}

Pending MpiComm::all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  reduce_scatter(lane, whole, partition, purpose).wait(lane);
  return all_gather(lane, whole, partition, purpose);
}

Pending MpiComm::broadcast(Lane const& lane, Span data, int root, Traffic purpose) {
  if (rank() != root) traffic().add(purpose, data.count, size_of(data.type));
  bool const staged = impl_->stages(data);
  if (data.space != Space::host) lane.fence("messages");
  std::int64_t const element_bytes = size_of(data.type);
  std::int64_t const length = staged ? impl_->staging.size() / element_bytes : std::int64_t{1} << 30;
  for (std::int64_t begin = 0; begin < data.count; begin += length) {
    std::int64_t const count = std::min(length, data.count - begin);
    unsigned char* const memory = staged ? impl_->staging.data() : at(data, begin);
    if (staged && rank() == root) {
      copy_to_host(lane, memory, at(data, begin), count * element_bytes);
      lane.fence("messages");
    }
    MPI_Request request = MPI_REQUEST_NULL;
    KOZERO_MPI(MPI_Ibcast, memory, static_cast<int>(count), mpi_type(data.type), root, impl_->comm, &request);
    wait_for(request);
    if (staged && rank() != root) {
      copy_to_device(lane, at(data, begin), memory, count * element_bytes);
      lane.fence("messages");
    }
  }
  return {};
}

void MpiComm::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  KOZERO_MPI(MPI_Ibarrier, impl_->comm, &request);
  wait_for(request);
}

void MpiComm::exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives) {
  std::vector<MPI_Request> requests;
  for (auto const& [from, bytes] : receives) {
    KOZERO_ASSERT(std::in_range<int>(bytes.size()));
    traffic().add(Traffic::control, static_cast<std::int64_t>(bytes.size()), 1);
    KOZERO_MPI(MPI_Irecv, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, exchange_tag, impl_->comm,
               &requests.emplace_back(MPI_REQUEST_NULL));
  }
  for (auto const& [to, bytes] : sends) {
    KOZERO_ASSERT(std::in_range<int>(bytes.size()));
    KOZERO_MPI(MPI_Isend, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, exchange_tag, impl_->comm,
               &requests.emplace_back(MPI_REQUEST_NULL));
  }
  wait_for_all(requests);
}

} // namespace kozero
