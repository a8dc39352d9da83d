#include "core/activity.hpp"

#include "core/ledger.hpp"
#include "support/catch.hpp"
#include "support/device_array.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

/// What `work` adds to a count.
template <class Work>
std::int64_t counted(std::int64_t Activity::*what, Work const& work) {
  std::int64_t const before = activity().*what;
  work();
  return activity().*what - before;
}

std::int64_t fences(std::string_view why) {
  for (auto const& [name, count] : activity().fences()) {
    if (name == why) return count;
  }
  return 0;
}

struct Memories {
  Ledger ledger;
  DeviceBuffer<float> device{ledger, Category::workspace, "device", 7};
  DeviceBuffer<float> other{ledger, Category::workspace, "other", 7};
  PinnedBuffer<float> pinned{ledger, Category::workspace, "pinned", 7};
  HostBuffer<float> host{ledger, Category::workspace, "host", 7};
};

} // namespace

TEST_CASE_METHOD(Memories, "each kind of work is counted as what it is") {
  Lane const lane;
  float* const x = device.data();
  auto const negate = KOKKOS_LAMBDA(std::int64_t i) { x[i] = -x[i]; };
  auto const launched = [&](std::int64_t n) { launch(lane, "test", Range{n}, negate); };
  CHECK(counted(&Activity::kernels, [&] { launched(7); }) == 1);
  CHECK(counted(&Activity::kernels, [&] { launched(0); }) == 0); // nothing reaches the device
  CHECK(counted(&Activity::kernels,
                [&] { launch(lane, "test", Teams{3}, KOKKOS_LAMBDA(RowTeam const&, std::int64_t){}); }) == 1);
  CHECK(counted(&Activity::kernels, [&] { launch(HostLane(), "test", Range{7}, [](std::int64_t) {}); }) == 0);
  CHECK(counted(&Activity::fills, [&] { fill(lane, device.pointer(), 1.0f, 7); }) == 1);
  CHECK(counted(&Activity::library_calls, [&] { enqueue(lane, "test", {}, {}, [](Lane::Exec const&) {}); }) == 1);
  lane.fence("test");
}

TEST_CASE_METHOD(Memories, "a copy is counted by the memories that it is between") {
  Lane const lane;
  struct Case {
    std::int64_t Activity::*what;
    std::function<void(std::int64_t)> copy;
  };
  auto const between = [&](Site to, Site from) {
    return [&lane, to, from](std::int64_t n) { copy_bytes(lane, to, from, 4 * n); };
  };
  Site const d{device.data(), Space::device}, o{other.data(), Space::device}, p{pinned.data(), Space::pinned},
      h{host.data(), Space::host};
  std::vector<Case> const cases = {
      {&Activity::device_copies, [&](std::int64_t n) { copy(lane, other.pointer(), device.pointer(), n); }},
      {&Activity::link_copies, [&](std::int64_t n) { copy(lane, pinned.pointer(), device.pointer(), n); }},
      {&Activity::link_copies, [&](std::int64_t n) { copy(lane, device.pointer(), pinned.pointer(), n); }},
      {&Activity::pageable_copies, [&](std::int64_t n) { copy(lane, host.pointer(), device.pointer(), n); }},
      {&Activity::pageable_copies, [&](std::int64_t n) { copy(lane, device.pointer(), host.pointer(), n); }},
      {&Activity::device_copies, between(o, d)},
      {&Activity::link_copies, between(p, d)},
      {&Activity::pageable_copies, between(h, p)}};
  for (std::size_t c = 0; c < cases.size(); ++c) {
    CAPTURE(c);
    for (auto const kind : {&Activity::device_copies, &Activity::link_copies, &Activity::pageable_copies}) {
      CHECK(counted(kind, [&] { cases[c].copy(7); }) == (kind == cases[c].what ? 1 : 0));
      CHECK(counted(kind, [&] { cases[c].copy(0); }) == 0);
    }
  }
  lane.fence("test");
}

TEST_CASE_METHOD(Memories, "a copy between pageable memory and the device is a wait of the host, no other is") {
  Lane const lane;
  std::int64_t const before = fences("pageable copy");
  copy(lane, pinned.pointer(), device.pointer(), 7);
  copy(lane, other.pointer(), device.pointer(), 7);
  CHECK(fences("pageable copy") == before);
  copy(lane, host.pointer(), device.pointer(), 7);
  CHECK(fences("pageable copy") == before + 1);
  lane.fence("test");
}

TEST_CASE("fences are counted by name, waits for an event among them") {
  Lane const lane;
  std::int64_t const before = fences("activity_test");
  lane.fence("activity_test");
  std::string const same = "activity_test"; // at another address
  lane.fence(same.c_str());
  Event event;
  event.record(lane);
  event.wait("activity_test");
  CHECK(fences("activity_test") == before + 3);
  CHECK(fences("another") == 0);
}

TEST_CASE("memory of the device, and pinned memory, is counted when it is taken; the host's is free, a plan's too") {
  Ledger ledger;
  Ledger plan(Ledger::Buffers::counted);
  auto const taken = [](auto const& make) { return counted(&Activity::allocations, make); };
  CHECK(taken([&] { DeviceBuffer<float> const buffer(ledger, Category::workspace, "a", 3); }) == 1);
  CHECK(taken([&] { PinnedBuffer<float> const buffer(ledger, Category::workspace, "a", 3); }) == 1);
  CHECK(taken([&] { HostBuffer<float> const buffer(ledger, Category::workspace, "a", 3); }) == 0);
  CHECK(taken([&] { DeviceBuffer<float> const buffer(plan, Category::workspace, "a", 3); }) == 0);
}
