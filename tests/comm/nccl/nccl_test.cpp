// What becomes of ranks when NCCL is late, fails or never ends, and what of their work goes on meanwhile.
#include "comm/nccl.hpp"
#include "comm/nccl/stand_in.hpp"
#include "comm/nccl_exchange.hpp"
#include "comm/rank_values.hpp"
#include "comm/transport.hpp"
#include "core/activity.hpp"
#include "core/event.hpp"
#include "core/while_waiting.hpp"
#include "support/messages.hpp"
#include "support/world.hpp"

#if KOZERO_EMULATED
#include "core/emulated/policy.hpp"
#endif

#include <algorithm>
#include <chrono>
#include <functional>

using namespace kozero;
using namespace kozero::test;
using Catch::Matchers::Contains;

namespace {

/// What a test makes go wrong, for as long as it lasts.
struct Faults {
  Faults() { restart_nccl_counts(); }
  ~Faults() { nccl_behaviour() = {}; }
  Faults(Faults const&) = delete;
  Faults& operator=(Faults const&) = delete;
  NcclBehaviour& operator*() const { return nccl_behaviour(); }
  NcclBehaviour* operator->() const { return &nccl_behaviour(); }
};

struct Connected {
  explicit Connected(NcclOptions const& options = {.hosts = RankHosts(make_world_ranks()->size())})
      : collectives(make_nccl_collectives(*ranks, ledger, shared, options)) {}
  Group group() { return {*ranks, *collectives}; }

  Ledger ledger;
  std::unique_ptr<Ranks> ranks = make_world_ranks();
  std::shared_ptr<MessageLane> shared = std::make_shared<MessageLane>(1 << 16);
  std::unique_ptr<Collectives> collectives;
};

NcclOptions hasty() {
  return {.hosts = RankHosts(make_world_ranks()->size()), .connect_limit_s = 1, .close_limit_s = 0.3};
}

#if KOZERO_EMULATED
/// What lanes are given waits as long as it can.
struct LatestPolicy {
  LatestPolicy() { emulated::set_policy({.order = emulated::Policy::Order::latest}); }
  ~LatestPolicy() { emulated::set_policy(before); }
  LatestPolicy(LatestPolicy const&) = delete;
  LatestPolicy& operator=(LatestPolicy const&) = delete;
  emulated::Policy const before = emulated::policy();
};
#endif

double seconds_of(std::function<void()> const& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

TEST_CASE("one rank connects, gathers, sums and broadcasts alone") {
  Connected connected;
  if (connected.ranks->size() > 1) return;
  Lane const lane;
  Partition const partition(100, 1);
  DeviceArray<float> const x(std::vector<float>(100, 3));
  Span const span{x.data(), 100, DType::f32, Space::device, "h.0"};
  connected.collectives->all_gather(lane, span, partition, Traffic::parameters).wait(lane);
  connected.collectives->reduce_scatter(lane, span, partition, Traffic::gradients).wait(lane);
  connected.collectives->broadcast(lane, span, 0, Traffic::control).wait(lane);
  CHECK(x.get() == std::vector<float>(100, 3));
}

TEST_CASE("a library that is not there is an error of all ranks, with what to do") {
  Faults const faults;
  faults->loads = make_world_ranks()->rank() != 0;
  std::string const text = message_of([] { Connected(); });
  CHECK_THAT(text, Contains("NCCL cannot be loaded (a test says so); set parallel.transport: mpi"));
  auto const world = make_world_ranks();
  if (world->size() == 1) return;
  auto const choice = choose_transport(*world, {});
  CHECK(choice.transport == Transport::mpi);
}

TEST_CASE("ranks with other versions of the library are refused") {
  Faults const faults;
  auto const world = make_world_ranks();
  if (world->size() == 1) return;
  if (world->rank() == 1) faults->version = 22703;
  std::string const text = message_of([] { Connected(); });
  CHECK_THAT(text, Contains("rank 1 has NCCL 2.27.3 and rank 0 has 2.28.9"));
}

TEST_CASE("where one rank cannot connect, all say so, and none waits for it") {
  Faults const faults;
  auto const world = make_world_ranks();
  std::int64_t const open = nccl_counts().open;
  faults->init_fails = world->rank() == world->size() - 1;
  std::string const text = message_of([] { Connected connected(hasty()); });
  CHECK_THAT(text, Contains("ncclCommInitRankConfig") || Contains("do not find each other"));
  CHECK(nccl_counts().open == open);
}

TEST_CASE("where one rank does not come to connect, the others end after their limit") {
  Faults const faults;
  auto const world = make_world_ranks();
  if (world->size() == 1) return;
  std::int64_t const open = nccl_counts().open;
  faults->init_never_ends = world->rank() == world->size() - 1;
  double const seconds = seconds_of([] {
    std::string const text = message_of([] { Connected connected(hasty()); });
    CHECK_THAT(text, Contains("ranks do not find each other by NCCL within 1") && Contains("NCCL_SOCKET_IFNAME"));
  });
  CHECK(seconds < 30);
  CHECK(nccl_counts().open == open);
}

TEST_CASE("an error in the first exchange is all ranks', with the words of the one that has it") {
  Faults const faults;
  auto const world = make_world_ranks();
  if (world->size() == 1) return;
  std::int64_t const open = nccl_counts().open;
  auto const group = GENERATE(0, 1, 2); // of messages, of a gather, of a broadcast
  CAPTURE(group);
  if (world->rank() == 0) faults->fails_at = group;
  std::string const text = message_of([] { Connected connected(hasty()); });
  CHECK_THAT(text, Contains("rank 0 on host") && Contains("NCCL failed in the first exchange"));
  CHECK(nccl_counts().open == open);
}

TEST_CASE("where one rank does not come to the first exchange, all end after their limit") {
  Faults const faults;
  auto const world = make_world_ranks();
  if (world->size() == 1) return;
  std::int64_t const open = nccl_counts().open;
  auto const group = GENERATE(0, 1, 2);
  CAPTURE(group);
  if (world->rank() == world->size() - 1) faults->stops_at = group;
  double const seconds = seconds_of([] {
    std::string const text = message_of([] { Connected connected(hasty()); });
    CHECK_THAT(text,
               Contains("NCCL does not get on with the first exchange within 1") && Contains("NCCL_SOCKET_IFNAME"));
  });
  CHECK(seconds < 30);
  CHECK(nccl_counts().open == open);
}

TEST_CASE("at first a rank meets those alone that it exchanges sums with") {
  auto const world = make_world_ranks();
  int const n = world->size();
  auto const hosts = n % 2 == 0 && n > 2 ? RankHosts::runs_of(2, n) : RankHosts(n);
  std::int64_t const peers = hosts.ranks_of_each() ? 1 + n / 2 - 1 : n - 1;
  restart_nccl_counts();
  Connected const connected({.hosts = hosts});
  std::int64_t const to_gather = n - 1;
  std::int64_t const to_broadcast = world->rank() == 0 ? n - 1 : 0;
  CHECK(nccl_counts().messages == peers + to_gather + to_broadcast);
}

TEST_CASE("peers are so of each other, each once, a rank itself first") {
  CHECK(exchange_peers(5, 8, 2) == std::vector<int>{5, 1, 3, 4, 7});
  CHECK(exchange_peers(2, 4, std::nullopt) == std::vector<int>{2, 0, 1, 3});
  CHECK(exchange_peers(1, 4, 4) == std::vector<int>{1, 0, 2, 3});
  for (int rank = 0; rank < 12; ++rank) {
    for (int const other : exchange_peers(rank, 12, 4)) {
      auto const its = exchange_peers(other, 12, 4);
      CHECK(std::ranges::count(its, rank) == 1);
    }
  }
}

TEST_CASE("in two levels a round has two launches, the last and shorter one too") {
  auto const world = make_world_ranks();
  int const n = world->size();
  if (n != 4) return;
  Lane const lane;
  Connected connected({.hosts = RankHosts::runs_of(2, n)});
  std::int64_t const round = (1 << 16) / (4 * n + 2 * 2 * 4); // elements of a part: addends, sums made and sums got
  Partition const partition(n * (round + 24), n);
  DeviceArray<float> const x(partition.capacity());
  fill(lane, on_device(x.data()), 1.0F, partition.capacity());
  std::int64_t const before = activity().kernels;
  connected.collectives
      ->reduce_scatter(lane, {x.data(), partition.capacity(), DType::f32, Space::device}, partition, Traffic::gradients)
      .wait(lane);
  CHECK(activity().kernels == before + 4);
  Interval const own = partition.shard(world->rank());
  auto const sums = x.get();
  for (std::int64_t i = own.begin; i < own.end; ++i) REQUIRE(sums[static_cast<std::size_t>(i)] == 4.0F);
}

TEST_CASE("an error that NCCL finds later names collective, block and rank, and what was under way is ended") {
  Faults const faults;
  Lane const lane;
  auto const world = make_world_ranks();
  int const n = world->size();
  if (n == 1) return;
  std::int64_t const aborted = nccl_counts().aborted;
  Partition const partition(1000, n);
  DeviceArray<float> const x(partition.capacity());
  std::string text;
  {
    Connected connected(hasty());
    restart_nccl_counts();
    if (world->rank() == 0) faults->fails_at = 3;
    text = message_of([&] {
      for (int turn = 0; turn < 100; ++turn) {
        connected.collectives
            ->reduce_scatter(lane, {x.data(), partition.capacity(), DType::f32, Space::device, "h.7"}, partition,
                             Traffic::gradients)
            .wait(lane);
        lane.fence("test");
      }
    });
  }
  CHECK_THAT(text, Contains(fmt::format("rank {} on host", world->rank())) &&
                       Contains("NCCL failed in reduce_scatter of gradients (h.7), collective number"));
  CHECK_THAT(text, world->rank() == 0 ? Contains("unhandled system error") && Contains("NCCL_DEBUG=INFO")
                                      : Contains("remote process exited") && Contains("look for the first rank"));
  CHECK(nccl_counts().aborted == aborted + 1);
}

TEST_CASE("a collective that an exception leaves under way keeps neither the device nor memory") {
  Faults const faults;
  Lane const lane;
  auto const world = make_world_ranks();
  int const n = world->size();
  if (n == 1) return;
  std::int64_t const aborted = nccl_counts().aborted;
  Partition const partition(1000, n);
  bool const explicitly = GENERATE(false, true);
  {
    Connected connected(hasty());
#if KOZERO_EMULATED
    LatestPolicy const policy;
#endif
    DeviceArray<float> const x(partition.capacity());
    try {
      Pending const pending = connected.collectives->all_gather(
          lane, {x.data(), partition.capacity(), DType::f32, Space::device}, partition, Traffic::parameters);
      if (explicitly) connected.collectives->abandon();
      throw Error("bad data on this rank");
    } catch (Error const&) {
    }
    CHECK(nccl_counts().aborted == aborted + 1);
    // Nobody comes to it any more, so it would never end.
    Pending next;
    auto const again = [&] {
      next = connected.collectives->broadcast(lane, {x.data(), 8, DType::f32, Space::device}, 0, Traffic::control);
    };
    CHECK_THAT(message_of(again), Contains("was ended after an error"));
  }
}

#if KOZERO_EMULATED
TEST_CASE("the host waits for ranks only where a lane has come to need what they send") {
  using Seen = WhileWaiting::Seen;
  auto const world = make_world_ranks();
  int const n = world->size();
  Connected connected;
  LatestPolicy const policy;
  Lane const lane;
  Partition const partition(1000, n);
  DeviceArray<float> const x(partition.capacity());
  DeviceArray<float> const other(1000);
  CHECK(WhileWaiting::look() == Seen::nothing);
  Pending pending = connected.collectives->all_gather(lane, {x.data(), partition.capacity(), DType::f32, Space::device},
                                                      partition, Traffic::parameters);
  CHECK(WhileWaiting::look() == Seen::under_way);
  fill(lane, on_device(other.data()), 2.0F, 1000);
  Event filled;
  filled.record(lane);
  pending.wait(lane);
  CHECK(WhileWaiting::look() == Seen::under_way); // the lane has its own work first
  filled.wait("test");
  CHECK(WhileWaiting::look() == Seen::holds_back_lane);
  lane.fence("test");
  fill(lane, on_device(x.data()), 2.0F, 1000); // held back by it
  lane.fence("test");
  CHECK(WhileWaiting::look() == Seen::nothing);
}

TEST_CASE("what was given before collectives end still comes") {
  auto const world = make_world_ranks();
  auto connected = std::make_unique<Connected>();
  LatestPolicy const policy;
  Lane const lane;
  DeviceArray<float> const x(1000);
  fill(lane, on_device(x.data()), static_cast<float>(3 + world->rank()), 1000);
  connected->collectives->broadcast(lane, {x.data(), 1000, DType::f32, Space::device}, 0, Traffic::control).wait(lane);
  connected.reset();
  CHECK(x.get() == std::vector<float>(1000, 3));
}

TEST_CASE("a collective that other ranks do not come to does not keep collectives from ending") {
  auto const world = make_world_ranks();
  int const n = world->size();
  if (n == 1) return;
  bool const comes = world->rank() < n - 1;
  std::int64_t const aborted = nccl_counts().aborted;
  auto connected = std::make_unique<Connected>(hasty());
  LatestPolicy const policy;
  Lane const lane;
  Partition const partition(100'000, n);
  DeviceArray<float> const x(partition.capacity());
  if (comes) {
    connected->collectives
        ->reduce_scatter(lane, {x.data(), partition.capacity(), DType::f32, Space::device}, partition,
                         Traffic::gradients)
        .wait(lane);
  }
  CHECK(seconds_of([&] { connected.reset(); }) < 10);
  lane.fence("test");
  CHECK(nccl_counts().aborted == aborted + (comes ? 1 : 0));
}
#endif

TEST_CASE("a library that does not come to its end does not keep the process") {
  Faults const faults;
  bool const hangs = GENERATE(false, true);
  CAPTURE(hangs);
  (hangs ? faults->finalize_hangs : faults->finalize_never_ends) = true;
  auto connected = std::make_unique<Connected>(hasty());
  double const seconds = seconds_of([&] { connected->collectives.reset(); });
  CHECK(seconds < 10);
  faults->finalize_hangs = false; // or the thread would outlive the test
}

TEST_CASE("what a collective brings has no wait of the host, and other lanes go on before it") {
  Lane const lane;
  auto const world = make_world_ranks();
  int const n = world->size();
  Connected connected;
  std::int64_t const size = 4000;
  Partition const partition(size, n);
  DeviceArray<float> const x(partition.capacity());
  DeviceArray<float> const other(size);
  fill(lane, on_device(x.data()), 1.0F, size);
  lane.fence("test");
  auto const fences = [] {
    std::int64_t all = 0;
    for (auto const& fence : activity().fences()) all += fence.count;
    return all;
  };
  std::int64_t const before = fences();
  Pending pending = connected.collectives->reduce_scatter(
      lane, {x.data(), partition.capacity(), DType::f32, Space::device}, partition, Traffic::gradients);
  fill(lane, on_device(other.data()), 2.0F, size); // the caller's lane is not held back by the call
  pending.wait(lane);
  CHECK(fences() == before);
  Interval const own = partition.shard(world->rank());
  auto const sums = x.get();
  for (std::int64_t i = own.begin; i < own.end; ++i)
    REQUIRE(sums[static_cast<std::size_t>(i)] == static_cast<float>(n));
}
