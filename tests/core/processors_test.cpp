#include "core/processors.hpp"
#include "support/catch.hpp"

#include <sched.h>

#include <atomic>
#include <initializer_list>
#include <thread>
#include <vector>

using namespace kozero;

namespace {

ProcessorMask mask_of(std::initializer_list<std::size_t> processors) {
  ProcessorMask mask;
  for (std::size_t const p : processors) mask.set(p);
  return mask;
}

std::vector<int> shares(std::vector<ProcessorMask> const& masks) {
  std::vector<int> result;
  for (int r = 0; r < static_cast<int>(masks.size()); ++r) result.push_back(thread_share(masks, r));
  return result;
}

std::vector<ProcessorMask> unbound(std::size_t ranks, std::size_t processors) {
  ProcessorMask all;
  for (std::size_t p = 0; p < processors; ++p) all.set(p);
  return std::vector<ProcessorMask>(ranks, all);
}

} // namespace

TEST_CASE("unbound ranks divide the host") {
  CHECK(shares(unbound(1, 2)) == std::vector{2});
  CHECK(shares(unbound(2, 2)) == std::vector{1, 1});
  CHECK(shares(unbound(3, 8)) == std::vector{2, 2, 2});
  CHECK(shares(unbound(3, 192)) == std::vector{64, 64, 64});
  CHECK(shares(unbound(7, 1001)) == std::vector(7, 143));
}

TEST_CASE("more ranks than processors run one thread each") { CHECK(shares(unbound(5, 2)) == std::vector(5, 1)); }

TEST_CASE("ranks that the launcher bound apart keep what they have, and do not divide it again") {
  CHECK(shares({mask_of({0, 1, 2}), mask_of({3, 4, 5}), mask_of({6})}) == std::vector{3, 3, 1});
}

TEST_CASE("ranks bound to a socket divide the socket") {
  ProcessorMask const first = mask_of({0, 1, 2, 3});
  ProcessorMask const second = mask_of({4, 5, 6, 7});
  CHECK(shares({first, first, second, second}) == std::vector{2, 2, 2, 2});
  CHECK(shares({first, second, second}) == std::vector{4, 2, 2});
}

TEST_CASE("no processor at all is still one thread") { CHECK(shares({ProcessorMask()}) == std::vector{1}); }

TEST_CASE("the mask of this process follows its affinity") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  ProcessorMask const all = allowed_processors();
  CHECK(static_cast<int>(all.count()) == CPU_COUNT(&before));
  std::size_t last = 0;
  for (std::size_t p = 0; p < all.size(); ++p) last = all[p] ? p : last;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  ProcessorMask const bound = allowed_processors();
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(bound == mask_of({last}));
}

TEST_CASE("a thread may leave the processor that its starter is bound to") {
  ProcessorMask const all = allowed_processors();
  if (all.count() < 2) return;
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  std::atomic<bool> is_done = false;
  std::thread unbound([&] { is_done.wait(false); });
  CPU_ZERO(&one);
  CPU_SET(all._Find_first(), &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  ProcessorMask inherited, left;
  std::thread([&] {
    inherited = allowed_processors();
    run_on_all_processors();
    left = allowed_processors();
  }).join();
  is_done = true;
  is_done.notify_all();
  unbound.join();
  sched_setaffinity(0, sizeof before, &before);
  CHECK(inherited.count() == 1);
  CHECK(left == all);
}
