// Collectives beside each other and beside other work.
#include "comm/mpi_collectives.hpp"
#include "comm/rank_values.hpp"
#include "core/launch.hpp"
#include "support/world.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <functional>

using namespace kozero;
using namespace kozero::test;

namespace {

using Device = MpiOptions::DeviceAccess;

/// So little staging memory that arrays of some hundred elements need many rounds.
void on_each_group(std::function<void(Group const&)> const& body) {
  for (Device const device : {Device::reached, Device::staged, Device::aware}) {
    if (device != Device::staged && !host_reaches_device) continue;
    INFO("device memory " << static_cast<int>(device));
    Ledger ledger;
    MpiRanks ranks;
    MpiCollectives collectives(ranks, ledger, {std::int64_t{4} * 8 * ranks.size() * 40, device});
    body({ranks, collectives});
  }
}

/// work() over and over until it is true or a minute is over.
bool comes_true(std::function<bool()> const& work) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!work()) {
    if (std::chrono::steady_clock::now() > end) return false;
    sched_yield();
  }
  return true;
}

enum class Kind { reduce_scatter, all_reduce, all_gather, broadcast };

/// A collective under way with its array.
struct Flight {
  Kind kind;
  std::uint32_t stream;
  GuardedArray<float> array;
  Pending pending = {};

  Flight(Kind its_kind, std::uint32_t its_stream, std::int64_t size)
      : kind(its_kind), stream(its_stream), array(size) {}

  void start(Lane const& lane, Group const& group) {
    Partition const partition(array.size(), group.size());
    auto const root = static_cast<int>(stream) % group.size();
    Interval const whole{0, array.size()};
    switch (kind) {
    case Kind::reduce_scatter:
      fill_addends(array, stream, group.rank());
      pending = group.collectives.reduce_scatter(lane, array.span(), partition, Traffic::gradients);
      break;
    case Kind::all_reduce:
      fill_addends(array, stream, group.rank());
      pending = group.collectives.all_reduce(lane, array.span(), partition, Traffic::gradients);
      break;
    case Kind::all_gather:
      fill_shard(array, stream, partition.shard(group.rank()));
      pending = group.collectives.all_gather(lane, array.span(), partition, Traffic::parameters);
      break;
    case Kind::broadcast:
      fill_shard(array, stream, group.rank() == root ? whole : Interval{0, 0});
      pending = group.collectives.broadcast(lane, array.span(), root, Traffic::parameters);
    }
  }

  void land(Lane const& lane, Group const& group) {
    pending.wait(lane);
    Interval const own = Partition(array.size(), group.size()).shard(group.rank());
    switch (kind) {
    case Kind::reduce_scatter: return require_summed(array, stream, group.size(), own);
    case Kind::all_reduce: return require_summed(array, stream, group.size(), {0, array.size()});
    case Kind::all_gather:
    case Kind::broadcast: return require_gathered(array, stream);
    }
  }
};

std::vector<Flight> many_flights() {
  std::vector<Flight> flights;
  std::uint32_t stream = 1;
  for (std::int64_t const size : {20000, 1, 1003, 0, 5000}) {
    for (Kind const kind : {Kind::reduce_scatter, Kind::all_gather, Kind::all_reduce, Kind::broadcast}) {
      flights.emplace_back(kind, stream++, size);
    }
  }
  return flights;
}

} // namespace

TEST_CASE("more collectives than there is memory for, waited for in an order of each rank's own") {
  on_each_group([](Group const& group) {
    Lane const lane;
    auto flights = many_flights();
    for (Flight& flight : flights) flight.start(lane, group);
    std::ranges::rotate(flights, flights.begin() + 7 * group.rank() % std::ssize(flights));
    if (group.rank() % 2 == 1) std::ranges::reverse(flights);
    for (Flight& flight : flights) flight.land(lane, group);
  });
}

TEST_CASE("a long reduction may end after a short one that began later") {
  on_each_group([](Group const& group) {
    Lane const lane;
    Flight longer(Kind::reduce_scatter, 1, 200'000);
    Flight shorter(Kind::reduce_scatter, 2, 64);
    longer.start(lane, group);
    shorter.start(lane, group);
    shorter.land(lane, group);
    longer.land(lane, group);
  });
}

TEST_CASE("all of a reduction's bytes come between launches, before anybody waits") {
  on_each_group([](Group const& group) {
    Lane const lane;
    for (Kind const kind : {Kind::reduce_scatter, Kind::all_reduce, Kind::all_gather}) {
      Ledger ledger;
      DeviceBuffer<float> other(ledger, Category::workspace, "test", 8);
      Flight flight(kind, 3, 20'000);
      group.ranks.traffic() = TrafficLedger();
      flight.start(lane, group);
      CHECK(flight.pending.arrived_bytes() == 0); // what came within the call was waited for
      CHECK(comes_true([&] {
        fill(lane, other.pointer(), 1.0f, other.size());
        return flight.pending.done();
      }));
      auto const purpose = kind == Kind::all_gather ? Traffic::parameters : Traffic::gradients;
      std::int64_t const bytes = group.ranks.traffic()[purpose].bytes;
      CHECK((bytes > 0) == (group.size() > 1));
      CHECK(flight.pending.arrived_bytes() == bytes);
      flight.land(lane, group);
      CHECK(group.ranks.traffic()[purpose].early_bytes == bytes);
    }
  });
}

TEST_CASE("what nobody gets on with before the wait is not early") {
  on_each_group([](Group const& group) {
    Lane const lane;
    Flight flight(Kind::reduce_scatter, 4, 20'000);
    group.ranks.traffic() = TrafficLedger();
    flight.start(lane, group);
    flight.land(lane, group);
    CHECK(group.ranks.traffic()[Traffic::gradients].early_bytes == 0);
  });
}

TEST_CASE("progress gets on with all that is under way, and never waits for a rank that has not come") {
  on_each_group([](Group const& group) {
    Lane const lane;
    std::vector<Flight> flights;
    for (std::uint32_t stream = 0; stream < 6; ++stream) flights.emplace_back(Kind::all_reduce, stream, 3000);
    if (group.rank() == 0) {
      for (Flight& flight : flights) flight.start(lane, group);
      for (int turn = 0; turn < 100; ++turn) group.collectives.progress();
      if (group.size() > 1) CHECK(std::ranges::none_of(flights, [](Flight const& f) { return f.pending.done(); }));
      group.ranks.barrier();
    } else {
      group.ranks.barrier();
      for (Flight& flight : flights) flight.start(lane, group);
    }
    CHECK(comes_true([&] {
      group.collectives.progress();
      return std::ranges::all_of(flights, [](Flight const& f) { return f.pending.done(); });
    }));
    for (Flight& flight : flights) flight.land(lane, group);
  });
}

TEST_CASE("a rank that waits for control gets on with what others wait for first") {
  on_each_group([](Group const& group) {
    Lane const lane;
    Flight flight(Kind::reduce_scatter, 5, 20'000);
    flight.start(lane, group);
    if (group.rank() == 0) flight.land(lane, group);
    std::int64_t one = 1;
    group.ranks.sum(std::span(&one, 1));
    CHECK(one == group.size());
    if (group.rank() > 0) flight.land(lane, group);
  });
}

TEST_CASE("a collective reads what its lane was given before the call, and its result is there for another lane") {
  on_each_group([](Group const& group) {
    Lane const before;
    Lane const after = separate_lane();
    Ledger ledger;
    std::int64_t const n = 5000;
    Partition const partition(n, group.size());
    DeviceBuffer<float> array(ledger, Category::workspace, "test", n);
    PinnedBuffer<float> result(ledger, Category::workspace, "test", n);
    auto const value = static_cast<float>(group.rank() + 1);
    float* const x = array.data();
    for (int turn = 0; turn < 3; ++turn) {
      launch(
          before, "test", Range{n}, KOKKOS_LAMBDA(std::int64_t i) { x[i] = value + static_cast<float>(turn); });
      Pending pending = group.collectives.all_reduce(before, {array.data(), n, DType::f32, Space::device}, partition,
                                                     Traffic::gradients);
      pending.wait(after);
      copy(after, result.pointer(), array.pointer(), n);
      after.fence("test");
      auto const ranks = static_cast<float>(group.size());
      float const expected = ranks * (ranks + 1) / 2 + ranks * static_cast<float>(turn);
      CHECK(std::ranges::count(std::span(result.data(), static_cast<std::size_t>(n)), expected) == n);
    }
  });
}
