#include "verify/selftest_cases.hpp"

#include "config/check.hpp"
#include "zero/plan.hpp"

#include <fmt/format.h>

#include <array>

namespace kozero {

namespace {

constexpr std::int64_t delayed_from = 2; // the first update that can be: before it there is no batch to hide behind

SelftestClass class_of(Config const& config, std::int64_t accumulate, std::int64_t updates) {
  Plan const plan(sharding_of(config), 0, 1);
  bool const ranks_first =
      plan.sums() == SumOrder::ascending && accumulate > 1 && plan.gradients() == Plan::Keep::shard;
  return {ranks_first ? SelftestClass::SumOrder::ranks_first : SelftestClass::SumOrder::micro_batches_first,
          plan.delays(updates)};
}

/// Collects the cases, and leaves out what a deck must not ask for.
class Cases {
public:
  Cases(Config const& deck, std::int64_t accumulate, std::int64_t updates)
      : deck_(deck), accumulate_(accumulate), updates_(updates) {}

  void add(std::int64_t stage, OffloadConfig const& offload, Recompute recompute) {
    SelftestCase added{.config = deck_};
    Config& config = added.config;
    config.zero = {stage};
    config.offload = offload;
    config.activations.recompute = recompute;
    if (!check(config).faults.empty()) return;
    added.columns = {std::to_string(stage),
                     offload.optimizer == OffloadTarget::host ? fmt::format("host {}", offload.ratio) : "none",
                     offload.delays() ? fmt::format("from {}", *offload.delayed_update.start) : "no",
                     recompute == Recompute::unit ? "unit" : "none"};
    added.kind = class_of(config, accumulate_, updates_);
    cases_.push_back(std::move(added));
  }

  std::vector<SelftestCase> take() { return std::move(cases_); }

private:
  Config const& deck_;
  std::int64_t accumulate_, updates_;
  std::vector<SelftestCase> cases_;
};

OffloadConfig on_host(double ratio, DelayedUpdateConfig delayed = {}) {
  return {.optimizer = OffloadTarget::host, .ratio = ratio, .delayed_update = delayed};
}

} // namespace

std::vector<SelftestCase> selftest_cases(Config const& deck, std::int64_t accumulate, std::int64_t updates) {
  Recompute const recompute = deck.activations.recompute;
  Recompute const other = recompute == Recompute::none ? Recompute::unit : Recompute::none;
  std::array const synchronous = {OffloadConfig{}, on_host(0.5), on_host(1)};
  std::array const delayed = {on_host(0.5, {delayed_from}), on_host(1, {delayed_from})};

  Cases cases(deck, accumulate, updates);
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (auto const& offload : synchronous) cases.add(stage, offload, recompute);
  }
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (auto const& offload : delayed) cases.add(stage, offload, recompute);
  }
  cases.add(3, on_host(0.5, {updates + 1}), recompute);
  cases.add(3, {}, other);
  return cases.take();
}

} // namespace kozero
