#include "support/catch.hpp"
#include "support/world.hpp"

#include "bench/rounds.hpp"

using namespace kozero;

TEST_CASE("figures of rounds are medians, and of ratios those of the rounds") {
  // Something disturbed the second round, in both of its pieces.
  std::vector<Round> const rounds = {{2, 1}, {20, 12}, {4, 1}, {3, 1.8}, {2.5, 1}};
  RoundFigures const figures = figures_of(rounds);
  CHECK(figures.work_s == 3);
  CHECK(figures.limit_s == 1);
  CHECK(figures.least_s == 2);
  CHECK(figures.most_s == 20);
  CHECK(figures.ratio == 0.5);
  CHECK(figures.spread() == 6);
}

TEST_CASE("one round is its own median, and work without a limit has no ratio") {
  std::vector<Round> const one = {{.work_s = 7}};
  RoundFigures const figures = figures_of(one);
  CHECK(figures.work_s == 7);
  CHECK(figures.spread() == 0);
  CHECK(figures.limit_s == 0);
  CHECK(figures.ratio == 0);
}

TEST_CASE("all ranks run as often, and get the times of the slowest") {
  auto const ranks = make_world_ranks();
  auto const all = slowest(*ranks, {{.work_s = 1.0 + ranks->rank(), .limit_s = 9.0 - ranks->rank()}, {5, 0}});
  REQUIRE(all.size() == 2);
  CHECK(all[0].work_s == Approx(ranks->size()));
  CHECK(all[0].limit_s == Approx(9));
  CHECK(all[1].work_s == Approx(5));
  CHECK(all[1].limit_s == 0);

  std::int64_t work = 0;
  std::int64_t limit = 0;
  auto const rounds = measure_rounds(
      *ranks, Pace::quick, Lane(), [&] { ++work; }, [&] { ++limit; });
  CHECK(std::ssize(rounds) == rounds_of(Pace::quick));
  for (auto const counted : {work, limit}) {
    auto const of_all = ranks->gather(counted);
    for (auto const of_one : of_all) CHECK(of_one == counted);
    CHECK(counted >= 2 + rounds_of(Pace::quick)); // two before the rounds
  }
  for (Round const& round : measure_rounds(*ranks, Pace::quick, Lane(), [&] { ++work; })) CHECK(round.limit_s == 0);
}
