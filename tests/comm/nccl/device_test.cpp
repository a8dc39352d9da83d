// What one rank can see of NCCL: with the library itself where the program was built with it, else with its stand-in.
#include "comm/nccl.hpp"
#include "comm/nccl_connection.hpp"
#include "core/launch.hpp"
#include "core/stream.hpp"
#include "support/catch.hpp"
#include "support/device_array.hpp"
#include "support/world.hpp"

#include <numeric>

using namespace kozero;
using namespace kozero::test;

namespace {

template <class Calls>
void give(Lane const& lane, NcclConnection& connection, DeviceArray<float> const& x, Calls const& calls) {
  Touched const all{x.data(), x.size() * 4};
  enqueue(lane, "kozero::test", {all}, {all},
          [its = &connection, calls](Lane::Exec const& exec) { its->group(stream_of(exec), calls); });
}

std::vector<float> numbers(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

} // namespace

TEST_CASE("a rank connects, sends to itself, gathers and broadcasts in the order of a lane") {
  auto const world = make_world_ranks();
  Lane const lane;
  NcclConnection connection(*world, {.connect_s = 60, .close_s = 10}, [] { return std::string("a test"); });
  REQUIRE(connection.is_open());
  std::int64_t const n = 100'003;
  DeviceArray<float> const x(2 * n);
  std::vector<float> values = numbers(n);
  values.resize(static_cast<std::size_t>(2 * n), 0.0F);
  x.set(values);
  int const self = world->rank();
  give(lane, connection, x, [at = x.data(), n, self](NcclGroup const& group) {
    group.receive(at + n, n, DType::f32, self);
    group.send(at, n, DType::f32, self);
  });
  float* const sent = x.data();
  launch(
      lane, "kozero::test", Range{n}, KOKKOS_LAMBDA(std::int64_t i) { sent[n + i] += 1; }); // behind the message
  std::vector<float> const found = x.get();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    wrong += found[static_cast<std::size_t>(n + i)] != static_cast<float>(i + 2);
  }
  CHECK(wrong == 0);
  if (world->size() == 1) {
    give(lane, connection, x, [at = x.data(), n](NcclGroup const& group) { group.all_gather(at, n, DType::f32); });
  }
  give(lane, connection, x, [at = x.data(), n](NcclGroup const& group) { group.broadcast(at, n, DType::f32, 0); });
  lane.fence("test");
  connection.look();
  CHECK(to_host(x.data(), n) == numbers(n));
}

TEST_CASE("a connection that was aborted lets memory go, and what a lane gets for it later does nothing") {
  auto const world = make_world_ranks();
  Lane const lane;
  NcclConnection connection(*world, {.connect_s = 60, .close_s = 10}, [] { return std::string("a test"); });
  {
    DeviceArray<float> const x(numbers(1000));
    lane.fence("test");
    connection.abort();
    CHECK_FALSE(connection.is_open());
    give(lane, connection, x, [at = x.data()](NcclGroup const& group) { group.broadcast(at, 1000, DType::f32, 0); });
    lane.fence("test");
    CHECK(x.get() == numbers(1000));
  }
  connection.look();
  connection.abort(); // once is enough
}

TEST_CASE("collectives of a rank with a device of its own") {
  auto const world = make_world_ranks();
  if (world->size() > 1) return;
  Lane const lane;
  Ledger ledger;
  auto const collectives =
      make_nccl_collectives(*world, ledger, std::make_shared<MessageLane>(1 << 20), {.hosts = RankHosts(1)});
  DeviceArray<float> const x(numbers(1000));
  Span const span{x.data(), 1000, DType::f32, Space::device, "h.0"};
  Partition const whole(1000, 1);
  collectives->all_reduce(lane, span, whole, Traffic::gradients).wait(lane);
  collectives->all_gather(lane, span, whole, Traffic::parameters).wait(lane);
  collectives->broadcast(lane, span, 0, Traffic::control).wait(lane);
  CHECK(x.get() == numbers(1000));
}
