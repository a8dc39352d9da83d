#include "comm/mpi_collectives.hpp"

#include "comm/mpi_calls.hpp"
#include "comm/tree_sum.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace kozero {

namespace {

void wait_for(MPI_Request request) {
  std::vector<MPI_Request> requests{request};
  wait_for_all(requests);
}

constexpr int sum_tag = first_collective_tag;

void require_countable(std::int64_t elements) {
  KOZERO_REQUIRE(std::in_range<MpiCount>(elements),
                 "a block of the model has {} elements and the MPI library counts to {} (it is older than MPI 4); use "
                 "an MPI 4 library",
                 elements, std::numeric_limits<MpiCount>::max());
}

unsigned char* at(Span const& span, std::int64_t element) {
  return static_cast<unsigned char*>(span.data) + element * size_of(span.type);
}

// A piece of every rank's interval: where it lies in an array, by rank.
struct Pieces {
  std::vector<MpiCount> counts;
  std::vector<MpiDisplacement> begins;
  void add(std::int64_t begin, std::int64_t count) {
    counts.push_back(static_cast<MpiCount>(count));
    begins.push_back(static_cast<MpiDisplacement>(begin));
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
  bool done() const override { return false; }
  std::int64_t arrived_bytes() const override { return 0; }

private:
  Pieces pieces_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

template <class Memory>
using Bytes = Kokkos::View<unsigned char*, Kokkos::LayoutRight, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

void copy_to_host(Lane const& lane, unsigned char* to, unsigned char* from, std::int64_t bytes) {
  if (bytes == 0) return;
  auto const n = static_cast<std::size_t>(bytes);
  Kokkos::deep_copy(lane.exec(), Bytes<PinnedMemory>(to, n), Bytes<DeviceMemory>(from, n));
}

void copy_to_device(Lane const& lane, unsigned char* to, unsigned char* from, std::int64_t bytes) {
  if (bytes == 0) return;
  auto const n = static_cast<std::size_t>(bytes);
  Kokkos::deep_copy(lane.exec(), Bytes<DeviceMemory>(to, n), Bytes<PinnedMemory>(from, n));
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

struct MpiCollectives::Impl {
  explicit Impl(MpiRanks& its_ranks)
      : ranks(its_ranks), comm(ranks.communicator().handle), rank(ranks.rank()), size(ranks.size()) {}

  MpiRanks& ranks;
  MPI_Comm comm;
  int rank;
  int size;
  MpiOptions options;
  PinnedBuffer<unsigned char> staging;

  bool stages(Span const& span) const {
    return span.space == Space::device && options.device == MpiOptions::DeviceMemory::staged;
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
      lane_.fence();
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

PinnedBuffer<unsigned char> staging_memory(Ledger& ledger, MpiOptions const& options, int ranks) {
  // Four regions at the most, each of a whole number of the largest elements for every rank. One message counts in int.
  std::int64_t const unit = std::int64_t{4} * 8 * ranks;
  std::int64_t const bytes = options.staging_bytes / unit * unit;
  KOZERO_REQUIRE(bytes > 0 && bytes <= std::numeric_limits<int>::max(),
                 "{} bytes of staging memory do not serve {} ranks (they need at least {}, and at the most 2 GiB); use "
                 "another size",
                 options.staging_bytes, ranks, unit);
  return {ledger, Category::staging, "messages", bytes, PinnedBuffer<unsigned char>::Init::none};
}

MpiCollectives::MpiCollectives(MpiRanks& ranks, Ledger& ledger, MpiOptions const& options)
    : impl_(std::make_unique<Impl>(ranks)) {
  KOZERO_REQUIRE(host_reaches_device || options.device == MpiOptions::DeviceMemory::staged,
                 "sums over ranks are made on the host (which does not reach this device's memory); stage it");
  impl_->options = options;
  impl_->staging = staging_memory(ledger, options, impl_->size);
}

MpiCollectives::~MpiCollectives() = default;

void MpiCollectives::progress() {}

Pending MpiCollectives::all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == impl_->size && whole.count >= partition.size());
  impl_->ranks.traffic().add(purpose, partition.size() - partition.shard(impl_->rank).size(), size_of(whole.type));
  if (impl_->stages(whole)) {
    impl_->gather_staged(lane, whole, partition);
    return {};
  }
  if (whole.space != Space::host) lane.fence();
  return Pending(std::make_unique<Gather>(impl_->comm, whole, partition));
}

void MpiCollectives::Impl::gather_staged(Lane const& lane, Span const& whole, Partition const& partition) {
  std::int64_t const length = part_length(whole.type, 1);
  std::int64_t const element_bytes = size_of(whole.type);
  auto const staged = [&](int r) { return staging.data() + r * length * element_bytes; };
  for (std::int64_t round = 0; round < rounds_of(partition, length); ++round) {
    Pieces pieces;
    for (int r = 0; r < size; ++r) pieces.add(r * length, part_of(partition.shard(r), round, length).size());
    Interval const own = part_of(partition.shard(rank), round, length);
    copy_to_host(lane, staged(rank), at(whole, own.begin), own.size() * element_bytes);
    lane.fence();
    MPI_Request request = MPI_REQUEST_NULL;
    KOZERO_MPI_COUNTED(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, staging.data(), pieces.counts.data(),
                       pieces.begins.data(), mpi_type(whole.type), comm, &request);
    wait_for(request);
    for (int r = 0; r < size; ++r) {
      Interval const part = part_of(partition.shard(r), round, length);
      if (r != rank) copy_to_device(lane, at(whole, part.begin), staged(r), part.size() * element_bytes);
    }
  }
  lane.fence();
}

Pending MpiCollectives::reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == impl_->size && whole.count >= partition.size());
  impl_->ranks.traffic().add(purpose, (impl_->size - 1) * partition.shard(impl_->rank).size(), size_of(whole.type));
  bool const staged = impl_->stages(whole);
  if (whole.space != Space::host) lane.fence();
  int const regions = staged ? 4 : 2;
  std::int64_t const length = impl_->part_length(whole.type, regions);
  Exchange exchange(impl_->comm, impl_->rank, lane, whole, partition, staged, length);
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
  if (staged) lane.fence(); // the staging memory is free again
  return {};
}

Pending MpiCollectives::all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  reduce_scatter(lane, whole, partition, purpose).wait(lane);
  return all_gather(lane, whole, partition, purpose);
}

Pending MpiCollectives::broadcast(Lane const& lane, Span data, int root, Traffic purpose) {
  if (impl_->rank != root) impl_->ranks.traffic().add(purpose, data.count, size_of(data.type));
  bool const staged = impl_->stages(data);
  if (data.space != Space::host) lane.fence();
  std::int64_t const element_bytes = size_of(data.type);
  std::int64_t const length = staged ? impl_->staging.size() / element_bytes : std::int64_t{1} << 30;
  for (std::int64_t begin = 0; begin < data.count; begin += length) {
    std::int64_t const count = std::min(length, data.count - begin);
    unsigned char* const memory = staged ? impl_->staging.data() : at(data, begin);
    if (staged && impl_->rank == root) {
      copy_to_host(lane, memory, at(data, begin), count * element_bytes);
      lane.fence();
    }
    MPI_Request request = MPI_REQUEST_NULL;
    KOZERO_MPI(MPI_Ibcast, memory, static_cast<int>(count), mpi_type(data.type), root, impl_->comm, &request);
    wait_for(request);
    if (staged && impl_->rank != root) {
      copy_to_device(lane, at(data, begin), memory, count * element_bytes);
      lane.fence();
    }
  }
  return {};
}

} // namespace kozero
