#include "verify/selftest.hpp"

#include "comm/agree.hpp"
#include "config/compute_type.hpp"
#include "data/batch_feed.hpp"
#include "optim/loss_scale.hpp"
#include "optim/schedule.hpp"
#include "train/progress.hpp"
#include "train/step.hpp"
#include "verify/selftest_report.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace kozero {

namespace {

/// A few updates as the Trainer makes them, with nothing around them. T is the compute type.
template <class T>
class SelftestRun {
public:
  SelftestRun(Config const& config, SelftestInput const& input, Communicator& comm, Ledger& ledger)
      : config_(config), comm_(comm),
        model_(config.model, input.batch.micro, config.activations.recompute, Purpose::train, ledger),
        engine_(Plan(sharding_of(config), comm.rank(), comm.size()), model_layout(config.model),
                model_uses(config.model), comm, ledger),
        feed_(input.corpus, config.run.seed, input.batch, config.model.context, comm.rank(), config.model.vocabulary,
              ledger) {
    if (config.precision.compute == ComputeType::fp16) loss_scale_.emplace(config.precision.loss_scale);
  }

  SelftestResult run(std::int64_t batches) {
    SelftestResult result;
    engine_.initialise(lane_, config_.run.seed);
    // Not past the end of the deck's schedule, where the learning rate may be 0 and nothing would happen.
    std::int64_t const scheduled = std::max(config_.run.updates, batches);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      StepReport const report = step(batch, scheduled);
      result.losses.push_back(report.loss);
      result.norms.push_back(report.update.norm);
    }
    engine_.drain(lane_);
    result.losses.push_back(loss_of(batches));
    result.hash = engine_.state_hash(lane_);
    return result;
  }

private:
  StepReport step(std::int64_t batch, std::int64_t scheduled) {
    std::int64_t const valid = load(batch);
    std::int64_t const t = used_ + 1;
    StepInput const input{.valid = valid,
                          .optimizer = config_.optimizer,
                          .lr = learning_rate(config_.optimizer, config_.schedule, scheduled, used_),
                          .t = t,
                          .loss_scale = loss_scale_ ? loss_scale_->value() : 1.0};
    StepReport report = *train_step(lane_, model_, engine_, feed_, input, comm_);
    if (!report.update.skipped) ++used_;
    if (loss_scale_) report.update.skipped ? loss_scale_->overflow() : loss_scale_->clean();
    return report;
  }

  /// Mean loss of a batch with the parameters that the model has: those that the last update has published.
  double loss_of(std::int64_t batch) {
    std::int64_t const valid = load(batch);
    double loss = evaluate_batch(lane_, model_, engine_, feed_);
    comm_.sum(std::span(&loss, 1));
    return loss / static_cast<double>(std::max<std::int64_t>(valid, 1));
  }

  /// Returns the batch's valid targets on all ranks.
  std::int64_t load(std::int64_t batch) {
    std::int64_t valid = feed_.load_training(batch);
    comm_.sum(std::span(&valid, 1));
    return valid;
  }

  Config const& config_;
  Communicator& comm_;
  Lane lane_;
  Model<T> model_;
  Engine<T> engine_;
  BatchFeed feed_;
  std::optional<LossScale> loss_scale_; // fp16 alone
  std::int64_t used_ = 0;               // gradients that have led or will lead to an update
};

/// The run, or nothing on all ranks where the memory of one is too small; then `no_room` says of which and why.
template <class T>
std::unique_ptr<SelftestRun<T>> make_run(Config const& config, SelftestInput const& input, Communicator& comm,
                                         Ledger& ledger, std::string& no_room) {
  std::string mine;
  auto run = on_all_ranks(comm, [&]() -> std::unique_ptr<SelftestRun<T>> {
    try {
      return std::make_unique<SelftestRun<T>>(config, input, comm, ledger);
    } catch (LimitError const& error) {
      mine = error.what();
      return nullptr;
    }
  });
  auto const all = comm.gather(mine);
  auto const first = std::ranges::find_if(all, [](auto const& text) { return !text.empty(); });
  if (first == all.end()) return run;
  no_room = first->substr(0, first->find(';')); // without the advice
  return nullptr;
}

template <class T>
SelftestOutcome run_case(Config const& config, SelftestInput const& input, Communicator& comm, Ledger& ledger) {
  std::string no_room;
  try {
    auto const run = make_run<T>(config, input, comm, ledger, no_room);
    if (!run) return {.kind = SelftestOutcome::Kind::does_not_fit, .message = no_room};
    return {.result = run->run(input.updates)};
  } catch (SharedError const& error) { // all ranks are here, and the next case can begin
    return {.kind = SelftestOutcome::Kind::failed, .message = error.what()};
  }
}

template <class T>
std::vector<SelftestOutcome> run_cases(std::vector<SelftestCase> const& cases, SelftestInput const& input,
                                       Communicator& comm, Ledger& ledger) {
  Progress progress(comm.rank() == 0);
  std::vector<SelftestOutcome> outcomes;
  for (auto const& next : cases) {
    auto const& [stage, offload, delayed, recompute] = next.columns;
    progress.show(fmt::format("combination {} of {}: stage {}, offload {}, delayed {}, recompute {}",
                              outcomes.size() + 1, cases.size(), stage, offload, delayed, recompute));
    outcomes.push_back(run_case<T>(next.config, input, comm, ledger));
  }
  return outcomes;
}

} // namespace

SelftestReport selftest(SelftestInput const& input, Communicator& comm, Ledger& ledger) {
  auto const cases = selftest_cases(input.config, input.batch.accumulate, input.updates);
  auto const outcomes = with_compute_type(input.config.precision.compute,
                                          [&]<class T>(T) { return run_cases<T>(cases, input, comm, ledger); });
  auto const findings = compare_selftest(cases, outcomes);
  SelftestVerdict const verdict = judge_selftest(findings);
  return {verdict.passed, selftest_table(cases, outcomes, findings) + verdict.text + '\n'};
}

} // namespace kozero
