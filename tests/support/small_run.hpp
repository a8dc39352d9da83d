#pragma once
// Runs a few updates of a small model on tokens from memory: the subject of most whole-program equalities.

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/rng.hpp"
#include "data/batch_shape.hpp"
#include "data/micro_batches.hpp"
#include "kernels/token_groups.hpp"
#include "model/model.hpp"
#include "train/step.hpp"
#include "zero/engine.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace kozero::test {

/// Shapes of inputs/tests/odd.yaml and tiny.yaml.
inline ModelConfig odd_model() { return {.layers = 1, .heads = 3, .width = 21, .context = 33, .vocabulary = 257}; }
inline ModelConfig tiny_model() { return {.layers = 1, .heads = 1, .width = 3, .context = 3, .vocabulary = 5}; }

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

/// This rank's share of batches made by a RowMaker, by the rule of BatchShape.
class MemoryBatches final : public MicroBatches {
public:
  MemoryBatches(RowMaker make, BatchShape const& shape, ModelConfig const& model, int rank)
      : make_(std::move(make)), shape_(shape), context_(model.context), vocabulary_(model.vocabulary), rank_(rank),
        tokens_("tokens", static_cast<std::size_t>(shape.micro * context_)), targets_("targets", tokens_.extent(0)),
        starts_("starts", tokens_.extent(0) + 1), positions_("positions", tokens_.extent(0)) {}

  void load(std::int64_t batch) { batch_ = batch; }
  std::int64_t micro_batches() const override { return shape_.accumulate; }

  std::int64_t valid() {
    std::int64_t count = 0;
    for (std::int64_t m = 0; m < shape_.accumulate; ++m) {
      fill(m);
      count += std::count_if(out_.begin(), out_.end(), [](std::int32_t target) { return target >= 0; });
    }
    return count;
  }

  MicroBatch upload(Lane const&, std::int64_t m) override {
    fill(m);
    std::vector<std::int32_t> starts(in_.size() + 1), positions(in_.size());
    std::int64_t const groups = group_tokens(in_, vocabulary_, starts, positions);
    copy(tokens_, in_);
    copy(targets_, out_);
    copy(starts_, starts);
    copy(positions_, positions);
    auto const n = static_cast<std::int64_t>(in_.size());
    return {
        make_vec<std::int32_t const>(tokens_.data(), n),
        make_vec<std::int32_t const>(targets_.data(), n),
        {make_vec<std::int32_t const>(starts_.data(), groups + 1), make_vec<std::int32_t const>(positions_.data(), n)}};
  }

private:
  using Ids = Kokkos::View<std::int32_t*, DeviceMemory>;
  static void copy(Ids const& to, std::vector<std::int32_t> const& from) {
    Kokkos::View<std::int32_t const*, HostMemory, Unmanaged> const host(from.data(), from.size());
    Kokkos::deep_copy(to, host);
  }
  void fill(std::int64_t m) {
    in_.resize(static_cast<std::size_t>(shape_.micro * context_));
    out_.resize(in_.size());
    auto const t = static_cast<std::size_t>(context_);
    for (std::int64_t i = 0; i < shape_.micro; ++i) {
      std::int64_t const row = shape_.first_sample(batch_, m, rank_) - batch_ * shape_.global() + i;
      auto const at = static_cast<std::size_t>(i) * t;
      make_(batch_, row, std::span(in_).subspan(at, t), std::span(out_).subspan(at, t));
    }
  }

  RowMaker make_;
  BatchShape shape_;
  std::int64_t context_, vocabulary_;
  int rank_;
  std::int64_t batch_ = 0;
  std::vector<std::int32_t> in_, out_;
  Ids tokens_, targets_, starts_, positions_;
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
  RowMaker rows; // random_rows unless given
};

struct SmallRunResult {
  std::vector<double> losses, norms;
  std::vector<UpdateReport> reports;
  std::string hash;
  TrafficLedger::Row parameters, gradients; // received by this rank, in all updates
  LinkTraffic link;                         // of this rank, in all updates
};

inline Sharding sharding(SmallRunOptions const& options) {
  return {.zero = {options.stage}, .offload = options.offload, .gradients = options.gradients};
}

/// A model with its engine, and steps on tokens from memory.
template <class T>
class SmallRun {
public:
  SmallRun(SmallRunOptions const& options, Communicator& comm)
      : options_(options), comm_(comm), shape_{options.micro, options.accumulate, comm.size()},
        model_(options.model, options.micro, options.recompute, Purpose::train, ledger_),
        engine_(Plan(sharding(options), comm.rank(), comm.size()), model_layout(options.model),
                model_uses(options.model), comm, ledger_),
        batches_(options.rows ? options.rows : random_rows(options.model.vocabulary), shape_, options.model,
                 comm.rank()) {
    engine_.initialise(Lane(), 1337);
  }

  StepReport step(std::int64_t batch, double lr, std::int64_t t) {
    batches_.load(batch);
    std::int64_t valid = batches_.valid();
    comm_.sum(std::span(&valid, 1));
    return *train_step(
        Lane(), model_, engine_, batches_,
        {.valid = valid, .optimizer = options_.optimizer, .lr = lr, .t = t, .loss_scale = options_.loss_scale}, comm_);
  }

  SmallRunResult run() {
    SmallRunResult result;
    auto const parameters = comm_.traffic()[Traffic::parameters];
    auto const gradients = comm_.traffic()[Traffic::gradients];
    std::int64_t used = 0; // gradients that have led or will lead to an update
    for (std::int64_t batch = 0; batch < options_.updates; ++batch) {
      StepReport const report = step(batch, options_.optimizer.lr, used + 1);
      used += report.update.skipped ? 0 : 1;
      result.losses.push_back(report.loss);
      result.norms.push_back(report.update.norm);
      result.reports.push_back(report.update);
    }
    engine_.drain(Lane());
    auto const since = [](TrafficLedger::Row now, TrafficLedger::Row before) {
      return TrafficLedger::Row{now.elements - before.elements, now.bytes - before.bytes};
    };
    result.parameters = since(comm_.traffic()[Traffic::parameters], parameters);
    result.gradients = since(comm_.traffic()[Traffic::gradients], gradients);
    result.link = engine_.link();
    result.hash = engine_.state_hash(Lane());
    return result;
  }

  void set_loss_scale(double scale) { options_.loss_scale = scale; }
  Engine<T>& engine() { return engine_; }
  Model<T>& model() { return model_; }
  MemoryBatches& batches() { return batches_; }

private:
  SmallRunOptions options_;
  Communicator& comm_;
  Ledger ledger_;
  BatchShape shape_;
  Model<T> model_;
  Engine<T> engine_;
  MemoryBatches batches_;
};

template <class T>
SmallRunResult small_run(SmallRunOptions const& options, Communicator& comm) {
  return SmallRun<T>(options, comm).run();
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
