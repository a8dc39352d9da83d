// Lanes, events, and the types that keep memories apart.
#include "core/event.hpp"
#include "core/half.hpp"
#include "core/views.hpp"

#include "support/catch.hpp"
#include "support/device_array.hpp"

#include <type_traits>

using namespace kozero;
using namespace kozero::test;

namespace {

static_assert(!std::is_same_v<Lane, HostLane> && !std::is_convertible_v<Lane, HostLane> &&
                  !std::is_convertible_v<HostLane, Lane>,
              "work for the device never passes for the host's");

template <class To, class From>
constexpr bool passes = std::is_convertible_v<Pointer<float, From>, Pointer<float, To>>;
static_assert(!passes<DeviceMemory, PinnedMemory> && !passes<DeviceMemory, HostMemory>);
static_assert(!passes<PinnedMemory, DeviceMemory> && !passes<PinnedMemory, HostMemory>);
static_assert(!passes<HostMemory, DeviceMemory> && !passes<HostMemory, PinnedMemory>);
static_assert(!std::is_convertible_v<DeviceBuffer<float>, HostBuffer<float>> &&
              !std::is_convertible_v<PinnedBuffer<float>, DeviceBuffer<float>>);
static_assert(DeviceMemory::kind == Space::device && PinnedMemory::kind == Space::pinned &&
              HostMemory::kind == Space::host);

static_assert(std::is_trivially_copyable_v<Vec<float>> && std::is_trivially_copyable_v<Mat<bf16 const>>,
              "what a kernel captures is copied to the device byte by byte");
static_assert(sizeof(Vec<float>) <= 16 && sizeof(Mat<float>) <= 32);
static_assert(std::is_convertible_v<Vec<float>, Vec<float const>> &&
              !std::is_convertible_v<Vec<float const>, Vec<float>>);
static_assert(std::is_convertible_v<Mat<float>, Mat<float const>> &&
              !std::is_convertible_v<Mat<float const>, Mat<float>>);

/// x ← 2x + 1, so that the order of two such shows.
void step(Lane const& lane, Vec<float> x) {
  launch(
      lane, "test", Range{x.size()}, KOKKOS_LAMBDA(std::int64_t i) { x(i) = 2 * x(i) + 1; });
}

std::vector<float> all(std::int64_t n, float value) { return std::vector<float>(static_cast<std::size_t>(n), value); }

} // namespace

TEST_CASE("work of a lane runs in the order in which it was given") {
  std::int64_t const n = 1003;
  DeviceArray<float> const x(n), y(n);
  Lane const lane = separate_lane();
  fill(lane, on_device(x.data()), 3.0f, n);
  step(lane, x);
  copy(lane, on_device(y.data()), on_device(x.data()), n);
  step(lane, x);
  lane.fence("test");
  CHECK(y.get() == all(n, 7));
  CHECK(x.get() == all(n, 15));
}

TEST_CASE("a lane that is held back by an event runs after what the other had been given, and the host goes on") {
  std::int64_t const n = 1003;
  for (bool const by_event : {true, false}) {
    DeviceArray<float> const x(n), y(n);
    Lane const early = separate_lane();
    Lane const late = separate_lane();
    fill(early, on_device(x.data()), 1.0f, n);
    step(early, x);
    if (by_event) {
      Event here;
      here.record(early);
      here.hold_back(late);
    } else {
      order_after(late, early);
    }
    copy(late, on_device(y.data()), on_device(x.data()), n);
    order_after(early, late);
    step(early, x); // not before it has been copied
    late.fence("test");
    CHECK(y.get() == all(n, 3));
    early.fence("test");
    CHECK(x.get() == all(n, 7));
  }
}

TEST_CASE("an event has been passed when its lane has run, and before it is first recorded") {
  std::int64_t const n = 17;
  DeviceArray<float> const x(n);
  Ledger ledger;
  PinnedBuffer<float> const pinned(ledger, Category::workspace, "pinned", n);
  Lane const lane = separate_lane();
  Event event;
  CHECK(event.done());
  event.wait("test");
  event.hold_back(lane);
  for (float const value : {1.0f, 2.0f}) { // recorded again
    fill(lane, on_device(x.data()), value, n);
    copy(lane, pinned.pointer(), on_device(x.data()), n);
    event.record(lane);
    event.wait("test");
    CHECK(event.done());
    CHECK(std::vector<float>(pinned.data(), pinned.data() + n) == all(n, value));
  }
  fill(lane, on_device(x.data()), 5.0f, n);
  event.record(lane);
  lane.fence("test");
  CHECK(event.done());
  Event moved = std::move(event);
  CHECK(moved.done());
}

TEST_CASE("a copy to pageable memory has been made when it returns, whatever else the lane has to do before") {
  std::int64_t const n = 333;
  DeviceArray<float> const x(n);
  std::vector<float> host(static_cast<std::size_t>(n));
  Lane const lane = separate_lane();
  fill(lane, on_device(x.data()), 1.0f, n);
  step(lane, x);
  copy(lane, on_host(host.data()), on_device(x.data()), n);
  CHECK(host == all(n, 3));
  host.assign(host.size(), 9.0f);
  copy(lane, on_device(x.data()), on_host(host.data()), n);
  host.assign(host.size(), 0.0f); // it has left
  lane.fence("test");
  CHECK(x.get() == all(n, 9));
}

TEST_CASE("host work has run when its launch returns, for every index once, however they are shared out") {
  for (std::int64_t const n : {0, 1, 1003}) {
    std::vector<int> visits(static_cast<std::size_t>(n));
    auto const visit = [&](std::int64_t i) { ++visits[i]; };
    launch(HostLane(), "test", Range{n}, visit);
    CHECK(visits == std::vector<int>(static_cast<std::size_t>(n), 1));
    launch(HostLane(), "test", DynamicRange{n}, visit);
    CHECK(visits == std::vector<int>(static_cast<std::size_t>(n), 2));
    fill(HostLane(), on_host(visits.data()), 7, n);
    CHECK(visits == std::vector<int>(static_cast<std::size_t>(n), 7));
  }
}

TEST_CASE("teams have scratch memory of their own, and see after a barrier what all have written there") {
  std::int64_t const teams = 37, n = 301;
  DeviceArray<float> const sums(teams), largest(teams);
  Vec<float> const s = sums, top = largest;
  std::int64_t const bytes = n * static_cast<std::int64_t>(sizeof(float));
  launch(
      Lane(), "test", Teams{teams, bytes}, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t index) {
        auto* const scratch = static_cast<float*>(team.scratch(bytes));
        team.loop(n, [&](std::int64_t i) { scratch[i] = static_cast<float>(index + i); });
        team.barrier();
        float const sum = team.sum(n, [&](std::int64_t i) { return scratch[n - 1 - i] - static_cast<float>(index); });
        float const last = team.max(n, [&](std::int64_t i) { return scratch[i]; });
        team.once([&] {
          s(index) = sum;
          top(index) = last;
        });
      });
  CHECK(sums.get() == all(teams, static_cast<float>(n * (n - 1) / 2)));
  std::vector<float> expected;
  for (std::int64_t index = 0; index < teams; ++index) expected.push_back(static_cast<float>(index + n - 1));
  CHECK(largest.get() == expected);
}

TEST_CASE("pieces of scratch memory are aligned, and do not overlap") {
  DeviceArray<float> const right(3);
  Vec<float> const out = right;
  launch(
      Lane(), "test", Teams{3, 16 + 16 + 4}, KOKKOS_LAMBDA(RowTeam const& team, std::int64_t index) {
        auto* const first = static_cast<char*>(team.scratch(4));
        auto* const second = static_cast<char*>(team.scratch(5));
        auto* const third = static_cast<char*>(team.scratch(4));
        bool const aligned = reinterpret_cast<std::uintptr_t>(first) % RowTeam::scratch_alignment == 0;
        bool const apart = second - first == 16 && third - second == 16;
        team.once([&] { out(index) = aligned && apart ? 1 : 0; });
      });
  CHECK(right.get() == all(3, 1));
}

TEST_CASE("parts of vectors and matrices are where they were cut") {
  DeviceArray const x(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  Mat<float> const matrix(x.data(), 3, 2, 4); // two columns of four
  CHECK(to_host(x.view().part(2, 5)) == std::vector<float>{2, 3, 4});
  CHECK((matrix.part(1, 3).data() == x.data() + 4 && matrix.part(1, 3).rows() == 2 && matrix.part(1, 3).stride() == 4));
  CHECK(to_host(make_mat(x.data(), 3, 4).part(1, 2).flat()) == std::vector<float>{4, 5, 6, 7});
  DeviceArray<float> const row(2);
  Vec<float> const out = row;
  launch(
      Lane(), "test", Range{2}, KOKKOS_LAMBDA(std::int64_t j) { out(j) = matrix(2, j); });
  CHECK(row.get() == std::vector<float>{8, 9});
}

#if KOZERO_EMULATED

using Catch::Matchers::Contains;

TEST_CASE("what is handed to a lane is all of one buffer, and the error names that") {
  DeviceArray<float> const x(4), y(100);
  Lane const lane;
  CHECK_THROWS_WITH(fill(lane, on_device(x.data() + 2), 1.0f, 3),
                    Contains("kozero::fill is handed bytes 8 to 20 of device buffer"));
  CHECK_THROWS_WITH(copy(lane, on_device(x.data()), on_device(y.data()), 5),
                    Contains("kozero::copy is handed bytes 0 to 20 of device buffer"));
  CHECK_THROWS_WITH(copy(lane, on_device(y.data()), on_device(x.data() + 4), 1), Contains("(it has 16)"));
  float here[2] = {};
  CHECK_THROWS_WITH(copy(lane, on_device(&here[0]), on_device(x.data()), 2),
                    Contains("kozero::copy takes host memory for device memory"));
  auto const nothing = [](Lane::Exec const&) {};
  Touched const fits{x.data(), 16}, too_long{x.data(), 17};
  CHECK_NOTHROW(enqueue(lane, "test", {fits}, {fits}, nothing));
  CHECK_THROWS_WITH(enqueue(lane, "test", {fits, too_long}, {}, nothing), Contains("test is handed bytes 0 to 17"));
  CHECK_THROWS_WITH(enqueue(lane, "test", {}, {too_long}, nothing), Contains("test is handed bytes 0 to 17"));
  lane.fence("test");
}

TEST_CASE("an index that a vector or matrix has not is told with its size, and the kernel that took it") {
  DeviceArray<float> const x(12);
  Vec<float> const vector(x.data(), 5);
  Mat<float> const matrix(x.data(), 3, 2, 4);
  Lane const lane;
  auto const touches = [&](auto const& touch) {
    launch(lane, "reckless", Range{1}, touch);
    lane.fence("test");
  };
  CHECK_NOTHROW(touches([=](std::int64_t) { vector(4) = matrix(2, 1) = 1; }));
  CHECK_THROWS_WITH(touches([=](std::int64_t) { vector(5) = 1; }),
                    Contains("'reckless' takes number 5 of 5 elements of a vector"));
  CHECK_THROWS_WITH(touches([=](std::int64_t) { vector(-1) = 1; }), Contains("number -1 of 5"));
  CHECK_THROWS_WITH(touches([=](std::int64_t) { matrix(3, 0) = 1; }), Contains("number 3 of 3 rows of a matrix"));
  CHECK_THROWS_WITH(touches([=](std::int64_t) { matrix(0, 2) = 1; }), Contains("number 2 of 2 columns of a matrix"));
  CHECK_THROWS_WITH(vector.part(3, 6), Contains("cuts 3 to 6 out of 5 elements of a vector"));
  CHECK_THROWS_WITH(matrix.part(2, 1), Contains("cuts 2 to 1 out of 3 rows of a matrix"));
}

#endif
