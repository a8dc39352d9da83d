#include "comm/survey.hpp"
#include "support/catch.hpp"
#include "support/world.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

ProcessorMask range(std::size_t first, std::size_t last) {
  ProcessorMask mask;
  for (std::size_t p = first; p <= last; ++p) mask.set(p);
  return mask;
}

// On a host of eight processors with one core each.
RankPlace place(std::string host, int threads, ProcessorMask processors) {
  return {std::move(host), threads, 8, processors, processors};
}

} // namespace

TEST_CASE("unbound ranks that fit are no reason to warn") {
  Survey const s = summarise({place("a", 4, range(0, 7)), place("a", 4, range(0, 7)), place("b", 8, range(0, 7))});
  CHECK(s.ranks == 3);
  CHECK(s.hosts == std::vector<std::string>{"a", "b"});
  CHECK(to_text(s.ranks_per_host) == "1 to 2");
  CHECK(to_text(s.threads_per_rank) == "4 to 8");
  CHECK_FALSE(s.ranks_share_cores);
  CHECK_FALSE(s.threads_exceed_processors);
  CHECK(s.binding == "none: any processor of the host (rank 0 on 0-7)");
}

TEST_CASE("ranks bound apart are no reason to warn") {
  Survey const s = summarise({place("a", 4, range(0, 3)), place("a", 4, range(4, 7))});
  CHECK(to_text(s.ranks_per_host) == "2");
  CHECK_FALSE(s.ranks_share_cores);
  CHECK_FALSE(s.threads_exceed_processors);
  CHECK(s.binding == "each rank has processors of its own (rank 0 on 0-3)");
}

TEST_CASE("two ranks bound to one core share it, though the host has seven more") {
  Survey const s = summarise({place("a", 1, range(0, 0)), place("a", 1, range(0, 0)), place("a", 1, range(1, 1))});
  CHECK(s.ranks_share_cores);
  CHECK(s.threads_exceed_processors);
  CHECK(s.binding == "some ranks have processors in common (rank 0 on 0)");
  // On two hosts the same masks are different cores.
  CHECK_FALSE(summarise({place("a", 1, range(0, 0)), place("b", 1, range(0, 0))}).ranks_share_cores);
}

TEST_CASE("two ranks on the two hardware threads of one core share it") {
  RankPlace first = place("a", 1, range(0, 0));
  RankPlace second = place("a", 1, range(1, 1));
  second.cores = first.cores;
  Survey const s = summarise({first, second});
  CHECK(s.ranks_share_cores);
}

TEST_CASE("more threads than processors") {
  CHECK(summarise({place("a", 9, range(0, 7))}).threads_exceed_processors);
  CHECK(summarise({place("a", 4, range(0, 7)), place("a", 5, range(0, 7))}).threads_exceed_processors);
  CHECK_FALSE(summarise({place("a", 8, range(0, 7))}).threads_exceed_processors);
  CHECK(summarise({place("a", 3, range(0, 1)), place("a", 1, range(2, 7))}).threads_exceed_processors);
}

TEST_CASE("sets of processors as text") {
  CHECK(to_text(range(0, 3) | range(8, 8) | range(10, 11)) == "0-3,8,10-11");
  CHECK(to_text(range(1023, 1023)) == "1023");
  CHECK(to_text(ProcessorMask()) == "none");
}

TEST_CASE_METHOD(World, "the survey of this run is the same on all ranks and tells the truth") {
  Survey const s = survey(world.ranks);
  CHECK(s.ranks == world.size());
  REQUIRE(s.hosts.size() == 1);
  CHECK(s.ranks_per_host.least == world.size());
  CHECK(s.threads_per_rank.most == static_cast<int>(HostExec().concurrency()));
  auto const bindings = world.ranks.gather(s.binding);
  for (auto const& binding : bindings) CHECK(binding == s.binding);
  RankPlace const here = find_place();
  CHECK(here.host == s.hosts.front());
  CHECK(here.processors == allowed_processors());
  CHECK(here.cores.any());
  CHECK(here.cores.count() <= here.processors.count());
  // With one thread a rank, ranks exceed processors exactly where threads do (no binding by the launcher here).
  if (s.binding.rfind("none", 0) == 0 && s.threads_per_rank.most == 1) {
    CHECK(s.threads_exceed_processors == (world.size() > static_cast<int>(here.processors.count())));
  }
}
