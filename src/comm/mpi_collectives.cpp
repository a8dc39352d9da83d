#include "comm/mpi_collectives.hpp"

#include "comm/mpi_calls.hpp"
#include "comm/rounds.hpp"
#include "core/between_launches.hpp"
#include "core/heartbeat.hpp"
#include "core/open_memory.hpp"
#include "core/profile.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace kozero {

namespace {

// Operations that may have staging memory at once: the gradients of two units, and parameters.
constexpr int n_slices = 4;
// Each has two rounds under way, with incoming addends and a mirror each.
constexpr int regions_of_slice = 4;
constexpr std::int64_t largest_element = 8;

// Of a message that no memory bounds.
constexpr std::int64_t long_piece_bytes = std::int64_t{1} << 30;

// MPI promises 32767 tags. Operations under way at once are far fewer than those counted here.
constexpr int n_numbers = 8192;

void require_countable(std::int64_t elements) {
  KOZERO_REQUIRE(std::in_range<MpiCount>(elements),
                 "a block of the model has {} elements and the MPI library counts to {} (it is older than MPI 4); use "
                 "an MPI 4 library",
                 elements, std::numeric_limits<MpiCount>::max());
}

} // namespace

PinnedBuffer<unsigned char> staging_memory(Ledger& ledger, MpiOptions const& options, int ranks) {
  // One message counts in int.
  std::int64_t const unit = regions_of_slice * largest_element * ranks;
  std::int64_t const bytes = options.staging_bytes / unit * unit;
  KOZERO_REQUIRE(n_slices * unit <= bytes && bytes <= std::numeric_limits<int>::max(),
                 "{} bytes of staging memory do not serve {} ranks (they need at least {}, and at the most 2 GiB); use "
                 "another size",
                 options.staging_bytes, ranks, n_slices * unit);
  return {ledger, Category::staging, "messages", bytes, PinnedBuffer<unsigned char>::Init::none};
}

DeviceBuffer<unsigned char> device_staging_memory(Ledger& ledger, PinnedBuffer<unsigned char> const& staging) {
  return {ledger, Category::staging, "messages", staging.size(), DeviceBuffer<unsigned char>::Init::none};
}

struct MpiCollectives::Impl {
  Impl(MpiRanks& its_ranks, Ledger& ledger, MpiOptions const& its_options);
  ~Impl();

  bool stages(Span const& span) const {
    return span.space == Space::device && options.device == MpiOptions::DeviceAccess::staged;
  }
  bool is_aware(Span const& span) const {
    return span.space == Space::device && options.device == MpiOptions::DeviceAccess::aware;
  }
  std::optional<int> free_slice() const;
  RoundMemory memory(int slice, int half, Span const& of);
  void advance_all();
  /// An operation that no Pending has.
  template <class AnOperation>
  AnOperation& spare(std::vector<std::unique_ptr<AnOperation>>& all);
  MessageSpan announce(char const* what, Traffic purpose, Received const& received);
  ElementBytes element_of(DType type) const { return {.moved = size_of(type), .partial_sum = size_of(type)}; }
  Pending start(MessageSpan span, Operation& operation);
  Pending start(MessageSpan span, Exchange const& exchange, Lane const& lane, Traffic purpose);

  MpiRanks& ranks;
  MpiOptions options;
  ExchangeWay way;
  PinnedBuffer<unsigned char> staging;
  DeviceBuffer<unsigned char> device_staging; // where MPI is aware of devices
  LazyLane copies{"messages"};
  std::array<bool, n_slices> taken{};
  std::vector<std::unique_ptr<GatherInPlace>> gathers; // as many as there were at once
  std::vector<std::unique_ptr<RoundsThroughSlice>> exchanges;
  std::vector<Operation*> under_way; // in the order of the calls
  std::int64_t calls = 0;
  BetweenLaunches const gets_on{[this] { advance_all(); }};
};

/// A collective of which something is still to be done, by this rank or by others; then it can be another one. What it
/// takes for that it keeps.
class MpiCollectives::Operation : public Pending::Work {
public:
  explicit Operation(Impl& impl) : impl_(impl) {}

  bool is_spare() const { return is_spare_; }
  void release() override {
    std::erase(impl_.under_way, this);
    is_spare_ = done_; // else messages may still come
  }

  /// Whether it waits for a slice, and the one that it gets then.
  virtual bool wants_slice() const { return false; }
  virtual void take(int) {}
  /// Gets on without waiting.
  virtual void advance() = 0;

  bool done() const override { return done_; }
  std::int64_t arrived_bytes() const override { return arrived_bytes_; }
  void follow(MessageSpan span) { span_ = span; }
  void tell_end() const { span_.end(); }
  void finish(Lane const& lane) override {
    impl_.ranks.traffic().add_early(purpose_, arrived_bytes_);
    span_.wanted(arrived_bytes_);
    if (!done_) {
      HostSpan const waits("wait", "messages");
      wait_until([this] { return done_; });
    }
    finished_.hold_back(lane);
  }

protected:
  void begin(Traffic purpose) {
    purpose_ = purpose;
    arrived_bytes_ = 0;
    done_ = false;
    is_spare_ = false;
    impl_.under_way.push_back(this);
  }

  Impl& impl_;
  std::int64_t arrived_bytes_ = 0;
  bool done_ = false;
  Event finished_; // never recorded where no lane has part in it

private:
  Traffic purpose_ = Traffic::control;
  MessageSpan span_;
  bool is_spare_ = true;
};

/// MPI reads the pieces until it is complete.
class MpiCollectives::GatherInPlace final : public Operation {
public:
  using Operation::Operation;

  void start(Traffic purpose, Span const& whole, Partition const& partition) {
    require_countable(partition.size());
    counts_.clear();
    begins_.clear();
    for (int r = 0; r < partition.ranks(); ++r) {
      counts_.push_back(static_cast<MpiCount>(partition.shard(r).size()));
      begins_.push_back(static_cast<MpiDisplacement>(partition.shard(r).begin));
    }
    require_open(whole.data, partition.size() * size_of(whole.type), "MPI_Iallgatherv", LibraryUse::writes);
    lacks_bytes_ = (partition.size() - partition.shard(impl_.ranks.rank()).size()) * size_of(whole.type);
    KOZERO_MPI_COUNTED(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, whole.data, counts_.data(), begins_.data(),
                       mpi_type(whole.type), impl_.ranks.communicator().handle,
                       &requests_.emplace_back(MPI_REQUEST_NULL));
    looked_at_ = false;
    begin(purpose);
  }

  void advance() override {
    if (!std::exchange(looked_at_, true)) return; // within the call that started it
    if (!all_complete(requests_)) return;
    if (!is_waiting()) arrived_bytes_ = lacks_bytes_;
    done_ = true;
  }

private:
  std::vector<MpiCount> counts_;
  std::vector<MpiDisplacement> begins_;
  std::vector<MPI_Request> requests_;
  std::int64_t lacks_bytes_ = 0;
  bool looked_at_ = false;
};

/// Two series of rounds, each in half a slice.
class MpiCollectives::RoundsThroughSlice final : public Operation {
public:
  explicit RoundsThroughSlice(Impl& impl)
      : Operation(impl), series_{Rounds(impl.ranks.communicator(), impl.copies),
                                 Rounds(impl.ranks.communicator(), impl.copies)} {}

  void start(Traffic purpose, Lane const& lane, Exchange const& exchange) {
    exchange_ = exchange;
    staged_ = impl_.stages(exchange.whole);
    tag_ = first_collective_tag + 2 * static_cast<int>(impl_.calls % n_numbers);
    if (exchange.whole.space != Space::host) given_before_.record(lane);
    has_begun_ = false;
    begin(purpose);
  }

  bool wants_slice() const override { return !slice_ && (staged_ || exchange_.sums()); }
  void take(int slice) override {
    slice_ = slice;
    impl_.taken[static_cast<std::size_t>(slice)] = true;
  }

  void advance() override {
    if (!given_before_.done()) return;
    if (!std::exchange(has_begun_, true)) begin_series();
    for (Rounds& rounds : series_) {
      std::int64_t const bytes = rounds.advance();
      if (!is_waiting()) arrived_bytes_ += bytes;
    }
    if (!std::ranges::all_of(series_, &Rounds::done)) return;
    if (staged_ || impl_.is_aware(exchange_.whole)) finished_.record(impl_.copies);
    done_ = true;
    give_slice(); // what comes next into it is behind the copies out of it, in the order of their lane
  }

private:
  void begin_series() {
    for (int const half : {0, 1}) {
      RoundMemory memory =
          slice_ ? impl_.memory(*slice_, half, exchange_.whole) : RoundMemory{.piece_bytes = long_piece_bytes};
      if (!staged_) memory.mirror = nullptr;
      series_[static_cast<std::size_t>(half)].begin(exchange_, memory, tag_ + half, half);
    }
  }
  void give_slice() {
    if (slice_) impl_.taken[static_cast<std::size_t>(*slice_)] = false;
    slice_.reset();
  }

  Exchange exchange_;
  bool staged_ = false;
  int tag_ = 0;
  bool has_begun_ = false;
  Event given_before_; // to the caller's lane
  std::optional<int> slice_;
  std::array<Rounds, 2> series_;
};

MpiCollectives::Impl::Impl(MpiRanks& its_ranks, Ledger& ledger, MpiOptions const& its_options)
    : ranks(its_ranks), options(its_options), way{options.hosts.value_or(RankHosts(ranks.size()))},
      staging(staging_memory(ledger, options, ranks.size())) {
  if (options.device == MpiOptions::DeviceAccess::aware) device_staging = device_staging_memory(ledger, staging);
}
MpiCollectives::Impl::~Impl() = default;

std::optional<int> MpiCollectives::Impl::free_slice() const {
  auto const free = std::ranges::find(taken, false);
  if (free == taken.end()) return std::nullopt;
  return static_cast<int>(free - taken.begin());
}

/// Of one of the two series of rounds. The mirror has its place whether an operation needs it or not: so nothing comes
/// into memory that a copy up to the device may still read.
RoundMemory MpiCollectives::Impl::memory(int slice, int half, Span const& of) {
  bool const mirrors = options.device == MpiOptions::DeviceAccess::staged;
  std::int64_t const half_bytes = staging.size() / n_slices / 2;
  std::int64_t const region_bytes = mirrors ? half_bytes / 2 : half_bytes;
  std::int64_t const piece_bytes = region_bytes / ranks.size() / largest_element * largest_element;
  unsigned char* const all = is_aware(of) ? device_staging.data() : staging.data();
  unsigned char* const begin = all + (2 * slice + half) * (half_bytes / largest_element * largest_element);
  return {.incoming = begin,
          .incoming_on_device = is_aware(of),
          .mirror = mirrors ? begin + piece_bytes * ranks.size() : nullptr,
          .piece_bytes = piece_bytes};
}

void MpiCollectives::Impl::advance_all() {
  bool slices_left = true; // for those that come later
  for (Operation* const operation : under_way) {
    if (operation->wants_slice()) {
      auto const slice = slices_left ? free_slice() : std::nullopt;
      slices_left = slice.has_value();
      if (!slice) continue;
      operation->take(*slice);
    }
    operation->advance();
    if (operation->done()) operation->tell_end();
  }
  std::erase_if(under_way, [](Operation const* operation) { return operation->done(); });
}

template <class AnOperation>
AnOperation& MpiCollectives::Impl::spare(std::vector<std::unique_ptr<AnOperation>>& all) {
  auto const place = std::ranges::find_if(all, &AnOperation::is_spare);
  if (place != all.end()) return **place;
  all.push_back(std::make_unique<AnOperation>(*this));
  under_way.reserve(gathers.size() + exchanges.size()); // how many are under way at once is a matter of time
  return *all.back();
}

/// Of what a collective will bring to this rank, before it begins.
MessageSpan MpiCollectives::Impl::announce(char const* what, Traffic purpose, Received const& received) {
  ranks.traffic().add(purpose, received);
  heartbeat().reach(what, name_of(purpose));
  return {what, name_of(purpose), received.bytes};
}

Pending MpiCollectives::Impl::start(MessageSpan span, Operation& operation) {
  operation.follow(span);
  ++calls;
  Pending pending(operation);
  BetweenLaunches::run();
  return pending;
}

Pending MpiCollectives::Impl::start(MessageSpan span, Exchange const& exchange, Lane const& lane, Traffic purpose) {
  auto& operation = spare(exchanges);
  operation.start(purpose, lane, exchange);
  return start(span, operation);
}

std::unique_ptr<Collectives> make_mpi_collectives(Ranks& ranks, Ledger& ledger, MpiOptions const& options) {
  auto* const several = dynamic_cast<MpiRanks*>(&ranks);
  if (!several) return ranks.make_collectives(ledger);
  return std::make_unique<MpiCollectives>(*several, ledger, options);
}

MpiCollectives::MpiCollectives(MpiRanks& ranks, Ledger& ledger, MpiOptions const& options) {
  KOZERO_REQUIRE(host_reaches_device || options.device != MpiOptions::DeviceAccess::reached,
                 "sums over ranks are made on the host (which does not reach this device's memory); stage it");
  impl_ = std::make_unique<Impl>(ranks, ledger, options);
}

MpiCollectives::~MpiCollectives() = default;

void MpiCollectives::progress() { BetweenLaunches::run(); }

Pending MpiCollectives::all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == impl_->ranks.size() && whole.count >= partition.size());
  auto const received =
      received_in_all_gather(partition, impl_->ranks.rank(), impl_->way, impl_->element_of(whole.type));
  MessageSpan const span = impl_->announce("all_gather", purpose, received);
  if (impl_->stages(whole) || impl_->is_aware(whole)) {
    return impl_->start(span, {Exchange::Way::to_all, whole, partition}, lane, purpose);
  }
  if (whole.space != Space::host) lane.fence("messages");
  auto& gather = impl_->spare(impl_->gathers);
  gather.start(purpose, whole, partition);
  return impl_->start(span, gather);
}

Pending MpiCollectives::reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == impl_->ranks.size() && whole.count >= partition.size());
  auto const received =
      received_in_reduce_scatter(partition, impl_->ranks.rank(), impl_->way, impl_->element_of(whole.type));
  MessageSpan const span = impl_->announce("reduce_scatter", purpose, received);
  return impl_->start(span, {Exchange::Way::to_owners, whole, partition}, lane, purpose);
}

Pending MpiCollectives::all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == impl_->ranks.size() && whole.count >= partition.size());
  auto const received =
      received_in_all_reduce(partition, impl_->ranks.rank(), impl_->way, impl_->element_of(whole.type));
  MessageSpan const span = impl_->announce("all_reduce", purpose, received);
  return impl_->start(span, {Exchange::Way::both, whole, partition}, lane, purpose);
}

Pending MpiCollectives::broadcast(Lane const& lane, Span data, int root, Traffic purpose) {
  KOZERO_ASSERT(0 <= root && root < impl_->ranks.size());
  auto const received =
      received_in_broadcast(data.count, impl_->ranks.rank(), root, impl_->way, impl_->element_of(data.type));
  MessageSpan const span = impl_->announce("broadcast", purpose, received);
  Partition const partition(data.count, impl_->ranks.size());
  return impl_->start(span, {Exchange::Way::to_all, data, partition, root}, lane, purpose);
}

} // namespace kozero
