#pragma once
// Runs a few updates of a small model on tokens from memory: the subject of most whole-program equalities.

#include "comm/group.hpp"
#include "config/config.hpp"
#include "core/rng.hpp"
#include "support/gpt2_model.hpp"
#include "train/training_of.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace kozero::test {

/// Shapes of inputs/tests/odd.yaml and tiny.yaml.
inline ModelConfig odd_model() {
  return gpt2_model({.layers = 1, .heads = 3, .width = 21, .context = 33, .vocabulary = 257});
}
inline ModelConfig tiny_model() {
  return gpt2_model({.layers = 1, .heads = 1, .width = 3, .context = 3, .vocabulary = 5});
}

/// Fills the T inputs and targets of row `row` of batch `batch`.
using RowMaker =
    std::function<void(std::int64_t batch, std::int64_t row, std::span<std::int32_t> in, std::span<std::int32_t> out)>;

/// Tokens that depend on (batch, row, place) alone; about one target in eight is ignored.
inline RowMaker random_rows(std::int64_t vocabulary) {
  return [vocabulary](std::int64_t batch, std::int64_t row, std::span<std::int32_t> in, std::span<std::int32_t> out) {
    RngKey const key{99, RngPurpose::shuffle, static_cast<std::uint32_t>(batch), static_cast<std::uint32_t>(row)};
    for (std::size_t t = 0; t < in.size(); ++t) {
      Philox4 const bits = random_bits(key, t);
      in[t] = static_cast<std::int32_t>(bits[0] % static_cast<std::uint32_t>(vocabulary));
      out[t] = bits[2] % 8 == 0 ? -1 : static_cast<std::int32_t>(bits[1] % static_cast<std::uint32_t>(vocabulary));
    }
  };
}

/// The rows of a RowMaker as the samples of a run.
class RowTokens final : public TokenSource {
public:
  /// `global`: rows a batch. So many windows are held out; they are batches past those of training.
  RowTokens(RowMaker make, std::int64_t global, std::int64_t held_out = 0)
      : make_(std::move(make)), global_(global), held_out_(held_out) {}

  void training_rows(std::int64_t first_sample, TokenRows const& rows) override { fill(first_sample, rows); }
  void evaluation_rows(std::int64_t first_window, TokenRows const& rows) override {
    fill((std::int64_t{1} << 20) * global_ + first_window, rows);
    for (std::size_t i = 0; i < rows.targets.size(); ++i) {
      if (first_window + static_cast<std::int64_t>(i) / rows.context >= held_out_) rows.targets[i] = no_target;
    }
  }
  std::int64_t evaluation_windows() const override { return held_out_; }

private:
  void fill(std::int64_t first_sample, TokenRows const& rows) {
    auto const context = static_cast<std::size_t>(rows.context);
    for (std::size_t i = 0; i * context < rows.inputs.size(); ++i) {
      std::int64_t const sample = first_sample + static_cast<std::int64_t>(i);
      make_(sample / global_, sample % global_, rows.inputs.subspan(i * context, context),
            rows.targets.subspan(i * context, context));
    }
  }

  RowMaker make_;
  std::int64_t global_, held_out_;
};

struct SmallRunOptions {
  ModelConfig model = odd_model();
  OptimizerConfig optimizer;
  std::int64_t stage = 0;
  OffloadConfig offload;
  GradientType gradients = GradientType::fp32;
  double loss_scale = 1;
  std::int64_t micro = 1;
  std::int64_t accumulate = 1;
  std::int64_t updates = 3;
  Recompute recompute = Recompute::none;
  Reproducibility reproducibility = Reproducibility::rerun;
  std::int64_t held_out = 0; // windows
  RowMaker rows;             // random_rows unless given
};

struct SmallRunResult {
  std::vector<double> losses, norms;
  std::vector<UpdateReport> reports;
  std::string hash;
  TrafficLedger::Row parameters, gradients; // received by this rank, in all updates
  LinkTraffic link;                         // of this rank, in all updates
};

template <class T>
constexpr ComputeType compute_type_of() {
  return std::is_same_v<T, float> ? ComputeType::fp32 : std::is_same_v<T, bf16> ? ComputeType::bf16 : ComputeType::fp16;
}

/// The setup of a training with those options, at a constant learning rate.
template <class T>
TrainingSetup setup_of(SmallRunOptions const& options, int ranks) {
  TrainingSetup setup;
  Config& config = setup.config;
  config.run.updates = std::numeric_limits<std::int64_t>::max() / 2;
  config.run.reproducibility = options.reproducibility;
  config.model = options.model;
  config.optimizer = options.optimizer;
  config.schedule.kind = ScheduleKind::constant;
  config.precision = {.compute = compute_type_of<T>(), .gradients = options.gradients};
  config.precision.loss_scale.initial = options.loss_scale;
  config.zero.stage = options.stage;
  config.offload = options.offload;
  config.activations.recompute = options.recompute;
  setup.batch = {options.micro, options.accumulate, ranks};
  setup.tokens = std::make_shared<RowTokens>(options.rows ? options.rows : random_rows(options.model.vocabulary),
                                             setup.batch.global(), options.held_out);
  return setup;
}

/// A training on tokens from memory, from its first parameters on.
template <class T>
class SmallRun {
public:
  SmallRun(SmallRunOptions const& options, Group const& group, std::function<double(std::int64_t)> rate = {})
      : options_(options), group_(group),
        training_(with_rate(setup_of<T>(options, group.size()), std::move(rate)), group, ledger_) {
    training_.initialise();
  }

  BatchReport step() { return *training_.step(); }

  SmallRunResult run() {
    SmallRunResult result;
    MovedSoFar const before = training_.moved();
    for (std::int64_t batch = 0; batch < options_.updates; ++batch) {
      BatchReport const report = step();
      result.losses.push_back(report.loss);
      result.norms.push_back(report.update.norm);
      result.reports.push_back(report.update);
    }
    training_.drain();
    MovedSoFar const after = training_.moved();
    auto const received = [&](Traffic purpose) {
      auto const& [now, then] = std::tie(after.received[purpose], before.received[purpose]);
      return TrafficLedger::Row{now.elements - then.elements, now.bytes - then.bytes};
    };
    result.parameters = received(Traffic::parameters);
    result.gradients = received(Traffic::gradients);
    result.link = after.link;
    result.hash = training_.state_hash();
    return result;
  }

  TrainingOf<T>& training() { return training_; }
  Engine<T>& engine() { return training_.engine(); }
  Model<T>& model() { return training_.model(); }
  BatchFeed& feed() { return training_.feed(); }

  /// What this rank holds, as a checkpoint has it.
  std::vector<StateEntry> state() const { return training_.state(); }

private:
  static TrainingSetup with_rate(TrainingSetup setup, std::function<double(std::int64_t)> rate) {
    setup.rate = std::move(rate);
    return setup;
  }

  SmallRunOptions options_;
  Group group_;
  Ledger ledger_;
  TrainingOf<T> training_;
};

template <class T>
SmallRunResult small_run(SmallRunOptions const& options, Group const& group) {
  return SmallRun<T>(options, group).run();
}

/// |a - b| / max(|b|, tiny)
inline double relative_difference(double a, double b) { return std::abs(a - b) / std::max(std::abs(b), 1e-30); }

inline double largest_difference(std::vector<double> const& a, std::vector<double> const& b) {
  double largest = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    double const difference = relative_difference(a[i], b[i]);
    largest = std::isnan(difference) ? 1e300 : std::max(largest, difference);
  }
  return largest;
}

} // namespace kozero::test
