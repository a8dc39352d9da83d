#include "comm/nccl_collectives.hpp"

#include "comm/agree.hpp"
#include "comm/mpi_calls.hpp"
#include "comm/mpi_collectives.hpp"
#include "comm/nccl_connection.hpp"
#include "comm/nccl_exchange.hpp"
#include "core/between_launches.hpp"
#include "core/heartbeat.hpp"
#include "core/launch.hpp"
#include "core/log.hpp"
#include "core/profile.hpp"
#include "core/run_ahead.hpp"
#include "core/stream.hpp"
#include "core/while_waiting.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kozero {

namespace {

/// Which collective it is, kept apart from whatever its names lie in.
struct Description {
  char const* what = "";
  Traffic purpose = Traffic::control;
  std::array<char, 64> block{};
  std::int64_t number = 0; // as the ranks' watch counts

  std::string to_text() const {
    std::string const of = block[0] == 0 ? std::string() : fmt::format(" ({})", block.data());
    return fmt::format("{} of {}{}, collective number {}", what, name_of(purpose), of, number);
  }
};

Description describe(char const* what, Traffic purpose, char const* block) {
  Description all{.what = what, .purpose = purpose, .number = heartbeat().read().collectives};
  std::string_view const name = block;
  std::copy_n(name.begin(), std::min(name.size(), all.block.size() - 1), all.block.begin());
  return all;
}

Touched touched(Span const& span, std::int64_t elements) { return {span.data, elements * size_of(span.type)}; }

} // namespace

/// A collective whose work a lane has; when all of that is done it can be another one.
class NcclCollectives::Operation final : public Pending::Work {
public:
  explicit Operation(Impl& impl) : impl_(impl) {}

  void begin(Description const& description) {
    description_ = description;
    is_held_ = true;
    is_under_way_ = true;
    is_awaited_ = false;
  }
  void record(Lane const& messages) { finished_.record(messages); }
  void wait() const { finished_.wait("messages"); }

  void finish(Lane const& lane) override {
    awaited_.record(lane);
    is_awaited_ = true;
    finished_.hold_back(lane);
  }
  bool done() const override { return finished_.done(); }
  /// What has come is known to the device alone.
  std::int64_t arrived_bytes() const override { return 0; }
  void release() override;

  /// Whether it has ended, seen for the first time.
  bool ends() {
    if (!finished_.done()) return false;
    is_under_way_ = false;
    return true;
  }
  /// Whether a lane has come to where it needs the result, which is not there.
  bool holds_back_lane() const { return is_awaited_ && awaited_.done() && !finished_.done(); }
  bool is_spare() const { return !is_held_ && !is_under_way_; }
  Description const& description() const { return description_; }

private:
  Impl& impl_;
  Description description_;
  bool is_held_ = false; // by a Pending
  bool is_under_way_ = false;
  bool is_awaited_ = false; // by a lane
  Event awaited_;
  Event finished_;
};

struct NcclCollectives::Impl {
  Impl(Ranks& its_ranks, Ledger& its_ledger, std::shared_ptr<MessageLane> its_shared, NcclOptions const& its_options);
  ~Impl();

  Lane const& messages() const { return shared->lane.get(); }
  std::string doing() const;
  void meet(double limit_s);
  WhileWaiting::Seen look();
  void note_ended();
  Operation& spare();
  template <class Give>
  Pending start(char const* what, Lane const& lane, Span const& span, Traffic purpose, Received const& received,
                Give const& give);
  void give_sums(Span const& whole, Partition const& partition);
  void give_gather(Span const& whole, Partition const& partition);
  template <class Calls>
  void give_group(char const* label, std::initializer_list<Touched> reads, std::initializer_list<Touched> writes,
                  Calls const& calls);
  Collectives& by_mpi();
  ElementBytes element_of(DType type) const {
    return {.moved = size_of(type), .partial_sum = std::max<std::int64_t>(size_of(type), 4)};
  }

  Ranks& ranks;
  Ledger& ledger;
  std::shared_ptr<MessageLane> shared;
  ExchangeWay way;
  double close_limit_s;
  std::vector<std::unique_ptr<Operation>> operations; // as many as there were at once
  std::vector<Operation*> under_way;                  // in the order of the calls, which is that of their ends
  Description begun;                                  // the last
  std::shared_ptr<NcclConnection> connection;         // ends before the memory that it may work on
  std::unique_ptr<Collectives> host;                  // made when it is first wanted
  std::optional<WhileWaiting> watched;                // once all have met
  std::optional<RunAhead> ahead;
  std::optional<BetweenLaunches> kept;
};

void NcclCollectives::Operation::release() {
  is_held_ = false;
  // Another rank may never come to it, and freeing memory would wait for it.
  if (std::uncaught_exceptions() > 0 && is_under_way_) impl_.connection->abort();
}

NcclCollectives::Impl::Impl(Ranks& its_ranks, Ledger& its_ledger, std::shared_ptr<MessageLane> its_shared,
                            NcclOptions const& its_options)
    : ranks(its_ranks), ledger(its_ledger),
      shared(std::move(its_shared)), way{its_options.hosts, its_options.hosts.ranks_of_each()},
      close_limit_s(its_options.close_limit_s) {
  KOZERO_ASSERT(its_options.hosts.ranks() == ranks.size());
  Failure const short_of_memory = failure_of([&] {
    KOZERO_REQUIRE(
        NcclRound({.type = DType::f64}, Partition(0, ranks.size()), 0, {}).elements_in(shared->bytes / 3) > 0,
        "{} bytes of device memory for messages do not serve {} ranks; use more", shared->bytes, ranks.size());
    shared->take(ledger);
  });
  share_failure(ranks, short_of_memory);
  connection = std::make_shared<NcclConnection>(
      ranks, NcclConnection::Limits{.connect_s = its_options.connect_limit_s, .close_s = close_limit_s},
      [this] { return doing(); });
  // Nothing looks while ranks agree on how that went: what others have found by then is theirs to tell.
  share_failure(ranks, failure_of([&] { meet(its_options.connect_limit_s); }));
  watched.emplace([this] { return look(); });
  if constexpr (!runs_on_host<Lane>) {
    ahead.emplace(512, std::vector<Lane>{default_lane(), messages()});
    kept.emplace([this] { ahead->look(); });
  }
}

/// Lets what was given end, for so long as closing may take.
NcclCollectives::Impl::~Impl() {
  if (std::uncaught_exceptions() > 0 || !connection->is_open()) return;
  try {
    note_ended();
    if (under_way.empty()) return;
    NcclConnection::Within const limit(*connection, close_limit_s);
    under_way.back()->wait();
  } catch (std::exception const& error) {
    if (connection->is_open()) log::warn("warning: {} is ended unfinished ({})", doing(), error.what());
    connection->abort();
  }
}

/// Of the oldest that is under way, or the last one.
std::string NcclCollectives::Impl::doing() const {
  Description const& it = under_way.empty() ? begun : under_way.front()->description();
  return *it.what == 0 ? "the first exchange" : it.to_text(); // meet()
}

/// Ranks that meet for the first time wait for each other within the call: so those that exchange sums do it here,
/// where all come. What NCCL's own collectives need it connects before (nccl_load.cpp). It is also the first that shows
/// whether the network between ranks carries data, so nobody waits for it without end.
void NcclCollectives::Impl::meet(double limit_s) {
  WhileWaiting const watched_now([this] { return look(); });
  NcclConnection::Within const limit(*connection, limit_s);
  unsigned char* const memory = shared->memory.data();
  std::int64_t const bytes = shared->memory.size();
  auto const peers = exchange_peers(ranks.rank(), ranks.size(), way.ranks_of_host);
  give_group("kozero::meet", {{memory, bytes}}, {{memory, bytes}},
             [memory, n = ranks.size(), peers](NcclGroup const& group) {
               for (int const rank : peers) {
                 group.receive(memory + n + rank, 1, DType::u8, rank);
                 group.send(memory + rank, 1, DType::u8, rank);
               }
             });
  give_group("kozero::meet", {{memory, bytes}}, {{memory, bytes}},
             [memory](NcclGroup const& group) { group.all_gather(memory, 1, DType::u8); });
  give_group("kozero::meet", {{memory, bytes}}, {{memory, bytes}},
             [memory](NcclGroup const& group) { group.broadcast(memory, 1, DType::u8, 0); });
  messages().fence("messages");
}

/// Asks for errors too.
WhileWaiting::Seen NcclCollectives::Impl::look() {
  using Seen = WhileWaiting::Seen;
  connection->look();
  note_ended();
  bool const all_wait = connection->is_held_to_limit(); // they meet, or close
  if (under_way.empty() && !all_wait) return Seen::nothing;
  keep_messages_moving();
  bool const holds_back = std::ranges::any_of(under_way, [](auto const* it) { return it->holds_back_lane(); });
  return all_wait || holds_back ? Seen::holds_back_lane : Seen::under_way;
}

void NcclCollectives::Impl::note_ended() {
  while (!under_way.empty() && under_way.front()->ends()) {
    under_way.erase(under_way.begin());
    heartbeat().arrive();
  }
}

NcclCollectives::Operation& NcclCollectives::Impl::spare() {
  auto const place = std::ranges::find_if(operations, &Operation::is_spare);
  if (place != operations.end()) return **place;
  return *operations.emplace_back(std::make_unique<Operation>(*this));
}

template <class Give>
Pending NcclCollectives::Impl::start(char const* what, Lane const& lane, Span const& span, Traffic purpose,
                                     Received const& received, Give const& give) {
  ranks.traffic().add(purpose, received);
  heartbeat().reach(what, name_of(purpose));
  begun = describe(what, purpose, span.name);
  KOZERO_REQUIRE(connection->is_open(),
                 "NCCL was ended after an error, and now there is {} (a fault of kozero); please "
                 "report it",
                 begun.to_text());
  connection->look();
  note_ended();
  order_after(messages(), lane);
  {
    LaneSpan const on_lane(messages(), what, name_of(purpose));
    try {
      give();
    } catch (...) { // of another group, or of a launch: half of it would wait for ranks that never come
      connection->abort();
      throw;
    }
  }
  Operation& operation = spare();
  operation.begin(begun);
  operation.record(messages());
  under_way.push_back(&operation);
  return Pending(operation);
}

/// A lane of the emulated device may come to it when the connection is gone.
template <class Calls>
void NcclCollectives::Impl::give_group(char const* label, std::initializer_list<Touched> reads,
                                       std::initializer_list<Touched> writes, Calls const& calls) {
  enqueue(messages(), label, reads, writes, [its = std::weak_ptr(connection), calls](Lane::Exec const& exec) {
    if (auto const there = its.lock()) there->group(stream_of(exec), calls);
  });
}

/// Own part: the sum over ranks.
void NcclCollectives::Impl::give_sums(Span const& whole, Partition const& partition) {
  NcclRound round(whole, partition, ranks.rank(), way.ranks_of_host);
  std::int64_t const most = round.elements_in(shared->memory.size());
  Touched const array = touched(whole, partition.size());
  Touched const memory{shared->memory.data(), shared->memory.size()};
  for (std::int64_t begin = 0; begin < partition.shard_capacity(); begin += most) {
    round.take(begin, std::min(most, partition.shard_capacity() - begin), shared->memory.data());
    give_group("kozero::exchange", {array}, {memory},
               [round](NcclGroup const& group) { round.exchange_within_hosts(group); });
    round.sum_within_hosts(messages());
    if (!round.in_two_levels()) continue;
    give_group("kozero::exchange_between_hosts", {memory}, {memory},
               [round](NcclGroup const& group) { round.exchange_between_hosts(group); });
    round.sum_between_hosts(messages());
  }
}

/// All parts, from their owners. NCCL's own wants parts of one size, for which memory has room; where the span has
/// none, each rank sends to each, and may meet some for the first time.
void NcclCollectives::Impl::give_gather(Span const& whole, Partition const& partition) {
  if (whole.count >= partition.capacity()) {
    Touched const array = touched(whole, partition.capacity());
    give_group("kozero::all_gather", {array}, {array},
               [data = whole.data, part = partition.shard_capacity(), type = whole.type](NcclGroup const& group) {
                 group.all_gather(data, part, type);
               });
    return;
  }
  Touched const array = touched(whole, partition.size());
  give_group("kozero::all_gather", {array}, {array},
             [whole, partition, own = ranks.rank(), n = ranks.size()](NcclGroup const& group) {
               auto const part = [&](int rank) {
                 return static_cast<unsigned char*>(whole.data) + partition.shard(rank).begin * size_of(whole.type);
               };
               for (int step = 1; step < n; ++step) {
                 int const from = (own - step + n) % n;
                 group.receive(part(from), partition.shard(from).size(), whole.type, from);
                 group.send(part(own), partition.shard(own).size(), whole.type, (own + step) % n);
               }
             });
}

Collectives& NcclCollectives::Impl::by_mpi() {
  if (!host) host = make_mpi_collectives(ranks, ledger, {.hosts = way.hosts});
  return *host;
}

NcclCollectives::NcclCollectives(Ranks& ranks, Ledger& ledger, std::shared_ptr<MessageLane> shared,
                                 NcclOptions const& options)
    : impl_(std::make_unique<Impl>(ranks, ledger, std::move(shared), options)) {}

NcclCollectives::~NcclCollectives() = default;

void NcclCollectives::progress() { impl_->note_ended(); }

void NcclCollectives::abandon() noexcept {
  if (!impl_->under_way.empty()) impl_->connection->abort();
}

Pending NcclCollectives::all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == impl_->ranks.size() && whole.count >= partition.size());
  if (whole.space != Space::device) return impl_->by_mpi().all_gather(lane, whole, partition, purpose);
  auto const received =
      received_in_all_gather(partition, impl_->ranks.rank(), impl_->way, impl_->element_of(whole.type));
  return impl_->start("all_gather", lane, whole, purpose, received, [&] { impl_->give_gather(whole, partition); });
}

Pending NcclCollectives::reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == impl_->ranks.size() && whole.count >= partition.size());
  if (whole.space != Space::device) return impl_->by_mpi().reduce_scatter(lane, whole, partition, purpose);
  auto const received =
      received_in_reduce_scatter(partition, impl_->ranks.rank(), impl_->way, impl_->element_of(whole.type));
  return impl_->start("reduce_scatter", lane, whole, purpose, received, [&] { impl_->give_sums(whole, partition); });
}

Pending NcclCollectives::all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) {
  KOZERO_ASSERT(partition.ranks() == impl_->ranks.size() && whole.count >= partition.size());
  if (whole.space != Space::device) return impl_->by_mpi().all_reduce(lane, whole, partition, purpose);
  auto const received =
      received_in_all_reduce(partition, impl_->ranks.rank(), impl_->way, impl_->element_of(whole.type));
  return impl_->start("all_reduce", lane, whole, purpose, received, [&] {
    impl_->give_sums(whole, partition);
    impl_->give_gather(whole, partition);
  });
}

Pending NcclCollectives::broadcast(Lane const& lane, Span data, int root, Traffic purpose) {
  KOZERO_ASSERT(0 <= root && root < impl_->ranks.size());
  if (data.space != Space::device) return impl_->by_mpi().broadcast(lane, data, root, purpose);
  auto const received =
      received_in_broadcast(data.count, impl_->ranks.rank(), root, impl_->way, impl_->element_of(data.type));
  return impl_->start("broadcast", lane, data, purpose, received, [&] {
    Touched const array = touched(data, data.count);
    impl_->give_group("kozero::broadcast", {array}, {array}, [data, root](NcclGroup const& group) {
      group.broadcast(data.data, data.count, data.type, root);
    });
  });
}

bool built_with_nccl() { return true; }

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string load_nccl() {
  int version = 0;
  NcclCalls const& calls = nccl_calls();
  KOZERO_REQUIRE(calls.get_version(&version) == ncclSuccess, "ncclGetVersion failed (no reason is given); look at the "
                                                             "library");
  return nccl_version_text(version);
}

std::unique_ptr<Collectives> make_nccl_collectives(Ranks& ranks, Ledger& ledger, std::shared_ptr<MessageLane> shared,
                                                   NcclOptions const& options) {
  return std::make_unique<NcclCollectives>(ranks, ledger, std::move(shared), options);
}

} // namespace kozero
