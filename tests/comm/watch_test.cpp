// Who is at fault when a run does not get on, and which ranks are slow.
#include "comm/watch/judgement.hpp"
#include "comm/watch/stragglers.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <string_view>

using namespace kozero::watch;
using kozero::test::contains;
using Fault = Verdict::Fault;
using Link = RankState::Link;

namespace {

constexpr Patience ten_ticks{.stalled = 10, .lost = 3};

RankState rank_at(std::int64_t number, std::string_view place, bool waits, std::int64_t idle_ticks = 0) {
  RankState rank{.host = "a", .link = Link::up};
  std::ranges::copy(place, rank.last.place.begin());
  rank.last.collectives = number;
  rank.last.waits = waits ? 1 : 0;
  rank.last.idle_ticks = idle_ticks;
  return rank;
}

/// Ranks that wait for the one behind them, rank 2 on host b.
std::vector<RankState> waiting_for_one(std::int64_t ticks) {
  std::vector<RankState> ranks(8, rank_at(1234, "reduce_scatter of gradients", true, ticks));
  ranks[2] = rank_at(1233, "all_gather of parameters", false, ticks);
  ranks[2].host = std::string(1, 'b');
  return ranks;
}

void check(std::vector<RankState> const& ranks, Fault fault, std::vector<int> const& culprits) {
  auto const verdict = judge(ranks, ten_ticks);
  REQUIRE(verdict);
  CHECK(verdict->fault == fault);
  CHECK(verdict->ranks == culprits);
}

} // namespace

TEST_CASE("a rank that works is waited for as long as it takes") {
  auto ranks = waiting_for_one(1'000'000);
  ranks[2].last.idle_ticks = 9;
  CHECK(!judge(ranks, ten_ticks));
  ranks[2].last.waits = 1; // as it does since a moment
  CHECK(!judge(ranks, ten_ticks));
}

TEST_CASE("the rank that does nothing and waits for nobody is at fault") { // CASES 27
  check(waiting_for_one(10), Fault::idle, {2});
}

TEST_CASE("the rank that is not heard of is at fault, whatever it said last") { // CASES 27
  for (bool const waits : {false, true}) {
    auto ranks = waiting_for_one(10);
    ranks[2].last.waits = waits ? 1 : 0;
    ranks[2].last.idle_ticks = 0;
    ranks[2].silent_ticks = 10; // the first of them was less than a second
    CHECK(!judge(ranks, ten_ticks));
    ranks[2].silent_ticks = 11;
    check(ranks, Fault::silent, {2});
  }
}

TEST_CASE("where all wait, those behind are at fault, or nobody more than others") {
  auto ranks = waiting_for_one(10);
  ranks[2].last.waits = 1;
  check(ranks, Fault::behind, {2});
  ranks[2].last.collectives = 1234;
  check(ranks, Fault::all_wait, {0, 1, 2, 3, 4, 5, 6, 7});
  ranks[5].last.idle_ticks = 9; // its messages have come
  CHECK(!judge(ranks, ten_ticks));
}

TEST_CASE("a rank that is not watched may be at work") {
  std::vector<RankState> ranks(3, rank_at(7, "barrier", true, 100));
  ranks[1] = {.host = "a", .silent_ticks = 100};
  CHECK(!judge(ranks, ten_ticks));
  ranks[2].silent_ticks = 11;
  check(ranks, Fault::silent, {2});
}

TEST_CASE("a closed connection is a lost rank, after a grace; one with a goodbye is not") {
  std::vector<RankState> ranks(3, rank_at(7, "barrier", true));
  ranks[1].link = Link::lost;
  ranks[2].link = Link::left;
  ranks[2].silent_ticks = 100;
  ranks[1].silent_ticks = 2;
  CHECK(!judge(ranks, ten_ticks));
  ranks[1].silent_ticks = 3;
  check(ranks, Fault::lost, {1});
  CHECK(!judge(ranks, ten_ticks.and_more(2)));
  CHECK(judge(ranks, {.stalled = std::nullopt}));
}

TEST_CASE("without a limit nobody is stuck") {
  auto ranks = waiting_for_one(1'000'000);
  ranks[1].silent_ticks = 1'000'000;
  CHECK(!judge(ranks, {.stalled = std::nullopt}));
}

TEST_CASE("the message names ranks, hosts and where all are") { // CASES 27
  auto ranks = waiting_for_one(600);
  ranks[2].silent_ticks = 601;
  std::string const text = explain({Fault::silent, {2}}, ranks, 600);
  CHECK(text ==
        "rank 2 on host b has not been heard of for 10m 00s (stopped, or its node or the network hangs); look at that "
        "node, then go on with --resume auto:\n"
        "  ranks 0-1, 3-7 wait in reduce_scatter of gradients, number 1234\n"
        "  rank 2 was last heard of in all_gather of parameters, number 1233");
  ranks[0] = {.host = "a"};
  ranks[1].link = Link::left;
  ranks[3] = rank_at(0, "", false);
  CHECK(contains(explain({Fault::lost, {4, 5, 7}}, ranks, 600),
                 {"ranks 4-5, 7 on host a are gone", "rank 0 is not watched\n", "rank 1 is at its end\n",
                  "rank 3 has reached no collective\n"}));
}

TEST_CASE("a message about many ranks stays short") {
  std::vector<RankState> ranks;
  std::vector<int> all;
  for (int r = 0; r < 1000; ++r) {
    ranks.push_back(rank_at(r, "barrier", true));
    ranks.back().host = "node" + std::to_string(r);
    all.push_back(r);
  }
  std::string const text = explain({Fault::silent, all}, ranks, 600);
  CHECK(contains(text, {"ranks 0-999 on hosts node0, node1, node2, node3 and 996 more", "and 980 places more"}));
  CHECK(text.size() < 2000);
}

namespace {

/// Ranks that have done batches of so many ms each, after so many ticks.
std::vector<RankState> with_paces(std::vector<double> const& ms, std::int64_t batches) {
  std::vector<RankState> ranks;
  for (double const pace : ms) {
    ranks.push_back(rank_at(1, "barrier", true));
    ranks.back().last.batches = batches;
    ranks.back().last.busy_ns = static_cast<std::int64_t>(pace * 1e6 * static_cast<double>(batches));
  }
  return ranks;
}

std::vector<std::string> named(std::vector<double> const& ms, std::int64_t batches_a_tick, int ticks) {
  Stragglers stragglers;
  std::vector<std::string> all;
  for (int tick = 0; tick < ticks; ++tick) {
    auto const lines = stragglers.look(with_paces(ms, tick * batches_a_tick));
    all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

} // namespace

TEST_CASE("a rank that takes far longer than the median is named once") {
  auto const lines = named({100, 110, 160, 95}, 5, 100);
  REQUIRE(lines.size() == 1);
  CHECK(contains(lines.front(), {"rank 2 on host a is slow (160 ms", "median of the ranks is 100 ms"}));
  CHECK(named({100, 200}, 5, 100).size() == 1);
  CHECK(named({100, 110, 140, 95}, 5, 100).empty());
  CHECK(named({100}, 5, 100).empty());
}

TEST_CASE("few batches or a short time name nobody") {
  CHECK(named({100, 100, 900}, 100, 10).empty());
  CHECK(named({100, 100, 900}, 1, 20).empty());
  CHECK(named({100, 100, 900}, 1, 30).size() == 1);
}

TEST_CASE("a rank that becomes slow late is found by what it did lately") {
  Stragglers stragglers;
  auto ranks = with_paces({10, 10, 10}, 100'000);
  CHECK(stragglers.look(ranks).empty());
  std::size_t found = 0;
  for (int tick = 0; tick < 40; ++tick) {
    for (auto& rank : ranks) {
      rank.last.batches += 10;
      rank.last.busy_ns += 100'000'000;
    }
    ranks[1].last.busy_ns += 100'000'000;
    found += stragglers.look(ranks).size();
  }
  CHECK(found == 1);
}
