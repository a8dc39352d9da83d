#pragma once
#include "comm/ranks.hpp"
#include "core/lane.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace kozero {

/// What one round has taken, in seconds: a piece of work, and beside it what it is measured against. They take turns,
/// so that what else goes on on the machine touches both.
struct Round {
  double work_s = 0;
  double limit_s = 0; // 0: there is no such piece
};

/// What rounds, at least one, come to.
struct RoundFigures {
  double work_s = 0; // medians
  double limit_s = 0;
  double least_s = 0; // of work
  double most_s = 0;
  double ratio = 0; // the median of limit over work, round by round, not the quotient of two medians; 0: no limit
  /// How far rounds lie apart, of the median.
  double spread() const { return (most_s - least_s) / work_s; }
};

RoundFigures figures_of(std::span<Round const> rounds);

/// How much time is taken for a measurement: for figures, or to see that it runs.
enum class Pace { usual, quick };

/// Rounds of a measurement.
int rounds_of(Pace pace);

/// Seconds of `times` runs of `work`, with the wait for what the lane was given.
double seconds_of(Lane const& lane, std::int64_t times, std::function<void()> const& work);

/// How often `work` runs in a round so that it lasts, after a first run that touches memory and makes libraries' code.
/// The same on all ranks. Collective.
std::int64_t times_a_round(Ranks& ranks, Pace pace, Lane const& lane, std::function<void()> const& work);

/// Rounds of `work` and, where there is one, `limit`, each a run's. Ranks begin each piece together; every rank gets
/// the time of the slowest. Collective.
std::vector<Round> measure_rounds(Ranks& ranks, Pace pace, Lane const& lane, std::function<void()> const& work,
                                  std::function<void()> const& limit = {});

/// The rounds of the slowest ranks: of each time the longest. Collective.
std::vector<Round> slowest(Ranks& ranks, std::vector<Round> rounds);

} // namespace kozero
