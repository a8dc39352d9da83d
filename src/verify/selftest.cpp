#include "verify/selftest.hpp"

#include "comm/agree.hpp"
#include "train/progress.hpp"
#include "train/training.hpp"
#include "verify/selftest_report.hpp"

#include <algorithm>
#include <memory>

namespace kozero {

namespace {

/// The deck's run, but not past the end of its schedule, where the learning rate may be 0 and nothing would happen.
TrainingSetup setup_of(Config const& config, SelftestInput const& input) {
  TrainingSetup setup{
      .config = config, .batch = input.batch, .tokens = std::make_shared<CorpusTokens>(input.corpus, config.run.seed)};
  setup.config.run.updates = std::max(config.run.updates, input.updates);
  return setup;
}

/// The training, or nothing on all ranks where the memory of one is too small; then `no_room` says of which and why.
std::unique_ptr<Training> make(Config const& config, SelftestInput const& input, Group const& group, Ledger& ledger,
                               std::string& no_room) {
  std::string mine;
  auto training = on_all_ranks(group.ranks, [&]() -> std::unique_ptr<Training> {
    try {
      return make_training(setup_of(config, input), group, ledger);
    } catch (LimitError const& error) {
      mine = error.what();
      return nullptr;
    }
  });
  auto const all = group.ranks.gather(mine);
  auto const first = std::ranges::find_if(all, [](auto const& text) { return !text.empty(); });
  if (first == all.end()) return training;
  no_room = first->substr(0, first->find(';')); // without the advice
  return nullptr;
}

SelftestResult run(Training& training, std::int64_t batches) {
  SelftestResult result;
  training.initialise();
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    BatchReport const report = *training.step();
    result.losses.push_back(report.loss);
    result.norms.push_back(report.update.norm);
  }
  training.drain();
  result.losses.push_back(training.loss_of(batches));
  result.hash = training.state_hash();
  return result;
}

SelftestOutcome run_case(Config const& config, SelftestInput const& input, Group const& group, Ledger& ledger) {
  std::string no_room;
  try {
    auto const training = make(config, input, group, ledger, no_room);
    if (!training) return {.kind = SelftestOutcome::Kind::does_not_fit, .message = no_room};
    return {.result = run(*training, input.updates)};
  } catch (SharedError const& error) { // all ranks are here, and the next case can begin
    return {.kind = SelftestOutcome::Kind::failed, .message = error.what()};
  }
}

std::vector<SelftestOutcome> run_cases(std::vector<SelftestCase> const& cases, SelftestInput const& input,
                                       Group const& group, Ledger& ledger) {
  Progress progress(group.rank() == 0);
  std::vector<SelftestOutcome> outcomes;
  for (auto const& next : cases) {
    auto const& [stage, offload, delayed, recompute] = next.columns;
    progress.show(fmt::format("combination {} of {}: stage {}, offload {}, delayed {}, recompute {}",
                              outcomes.size() + 1, cases.size(), stage, offload, delayed, recompute));
    outcomes.push_back(run_case(next.config, input, group, ledger));
  }
  return outcomes;
}

} // namespace

SelftestReport selftest(SelftestInput const& input, Group const& group, Ledger& ledger) {
  auto const cases = selftest_cases(input.config, input.batch.accumulate, input.updates);
  auto const outcomes = run_cases(cases, input, group, ledger);
  auto const findings = compare_selftest(cases, outcomes);
  SelftestVerdict const verdict = judge_selftest(findings);
  return {verdict.passed, selftest_table(cases, outcomes, findings) + verdict.text + '\n'};
}

} // namespace kozero
