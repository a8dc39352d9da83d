#include "bench/rounds.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace kozero {

namespace {

constexpr std::int64_t most_times = 1 << 16;

double seconds_a_round(Pace pace) { return pace == Pace::usual ? 0.02 : 0.001; }

/// Of what `figure` says of each round.
template <class Figure>
double median(std::span<Round const> rounds, Figure const& figure) {
  std::vector<double> values;
  for (Round const& round : rounds) values.push_back(figure(round));
  auto const middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::int64_t most_of(Ranks& ranks, std::int64_t mine) {
  return ranks.size() == 1 ? mine : std::ranges::max(ranks.gather(mine));
}

double longest(Ranks& ranks, double seconds) {
  return static_cast<double>(most_of(ranks, std::llround(seconds * 1e9))) * 1e-9;
}

} // namespace

RoundFigures figures_of(std::span<Round const> rounds) {
  KOZERO_ASSERT(!rounds.empty());
  auto const [least, most] = std::ranges::minmax(rounds, {}, &Round::work_s);
  return {.work_s = median(rounds, [](Round const& round) { return round.work_s; }),
          .limit_s = median(rounds, [](Round const& round) { return round.limit_s; }),
          .least_s = least.work_s,
          .most_s = most.work_s,
          .ratio = median(rounds, [](Round const& round) { return round.limit_s / round.work_s; })};
}

int rounds_of(Pace pace) { return pace == Pace::usual ? 7 : 3; }

double seconds_of(Lane const& lane, std::int64_t times, std::function<void()> const& work) {
  auto const begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < times; ++i) work();
  lane.fence("rate");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::int64_t times_a_round(Ranks& ranks, Pace pace, Lane const& lane, std::function<void()> const& work) {
  seconds_of(lane, 1, work);
  ranks.barrier();
  double const once = std::max(seconds_of(lane, 1, work), 1e-9);
  return most_of(ranks, std::clamp<std::int64_t>(std::llround(seconds_a_round(pace) / once), 1, most_times));
}

std::vector<Round> measure_rounds(Ranks& ranks, Pace pace, Lane const& lane, std::function<void()> const& work,
                                  std::function<void()> const& limit) {
  std::int64_t const work_times = times_a_round(ranks, pace, lane, work);
  std::int64_t const limit_times = limit ? times_a_round(ranks, pace, lane, limit) : 0;
  auto const once = [&](std::int64_t times, std::function<void()> const& piece) {
    ranks.barrier();
    return seconds_of(lane, times, piece) / static_cast<double>(times);
  };
  std::vector<Round> rounds;
  for (int i = 0; i < rounds_of(pace); ++i) {
    double const limit_s = limit ? once(limit_times, limit) : 0.0;
    rounds.push_back({.work_s = once(work_times, work), .limit_s = limit_s});
  }
  return slowest(ranks, rounds);
}

std::vector<Round> slowest(Ranks& ranks, std::vector<Round> rounds) {
  if (ranks.size() == 1) return rounds;
  for (Round& round : rounds) {
    round.work_s = longest(ranks, round.work_s);
    round.limit_s = longest(ranks, round.limit_s);
  }
  return rounds;
}

} // namespace kozero
