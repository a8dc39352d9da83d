#pragma once
// Two pieces of work, measured in turn: what else goes on on the machine touches both.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace kozero::bench {

inline double median(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline double seconds_of(auto const& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs ours() and other() once an iteration, each first in turn; both return when their work is done. Counters: the
/// medians in seconds, and the median of ours over other. For benchmarks with UseManualTime(), whose time is ours.
/// Before each work comes prepare(), which is not timed.
void measure_pair(benchmark::State& state, auto const& ours, auto const& other, auto const& prepare) {
  prepare();
  ours(); // memory touched, libraries' code made
  prepare();
  other();
  auto const timed = [&](auto const& work) {
    prepare();
    return seconds_of(work);
  };
  std::vector<double> our_seconds, other_seconds, ratios;
  for ([[maybe_unused]] auto _ : state) {
    bool const first = our_seconds.size() % 2 == 0;
    if (first) our_seconds.push_back(timed(ours));
    other_seconds.push_back(timed(other));
    if (!first) our_seconds.push_back(timed(ours));
    ratios.push_back(our_seconds.back() / other_seconds.back());
    state.SetIterationTime(our_seconds.back());
  }
  state.counters["ours"] = median(std::move(our_seconds));
  state.counters["other"] = median(std::move(other_seconds));
  state.counters["ratio"] = median(std::move(ratios));
}

void measure_pair(benchmark::State& state, auto const& ours, auto const& other) {
  measure_pair(state, ours, other, [] {});
}

} // namespace kozero::bench
