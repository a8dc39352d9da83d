#include "config/check.hpp"

#include "config/model_family.hpp"
#include "config/paths.hpp"
#include "config/schema.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

namespace kozero {

namespace {

/// Collects findings, and leaves out those about values that are wrong by themselves or were never read.
class Checker {
public:
  Checker(Config const& config, std::set<std::string> const& unread) : config_(config), unsound_(unread) {}

  Findings run() {
    limits();
    paths();
    model();
    data();
    batch();
    schedule();
    precision();
    parallel();
    offload();
    reproducibility();
    return std::move(findings_);
  }

private:
  using Names = std::vector<std::string>;

  bool sound(Names const& keys) const {
    return std::ranges::none_of(keys, [this](auto const& key) { return unsound_.contains(key); });
  }
  template <class... Args>
  void fault(Names keys, fmt::format_string<Args...> text, Args&&... args) {
    findings_.faults.push_back({std::move(keys), fmt::format(text, std::forward<Args>(args)...)});
  }
  template <class... Args>
  void warning(Names keys, fmt::format_string<Args...> text, Args&&... args) {
    findings_.warnings.push_back({std::move(keys), fmt::format(text, std::forward<Args>(args)...)});
  }

  void limits() {
    Config copy = config_;
    for (auto const& key : keys_of(copy)) {
      if (!sound({key.path})) continue;
      std::string const text = limits_fault(key);
      if (text.empty()) continue;
      fault({key.path}, "{}", text);
      unsound_.insert(key.path);
    }
  }

  void paths() {
    auto const look = [this](char const* key, std::string const& path) {
      std::string const text = sound({key}) ? path_fault(path) : "";
      if (!text.empty()) fault({key}, "{}", text);
    };
    look("run.dir", config_.run.dir);
    look("data.train", config_.data.train);
    look("data.validation", config_.data.validation);
  }

  void model() {
    ModelConfig const& model = config_.model;
    ModelFamily const& family = model_family(model.family);
    for (Finding& finding : family.faults(model, [this](Names const& keys) { return sound(keys); })) {
      findings_.faults.push_back(std::move(finding));
    }
    // What grows with the batch: activations, logits, and the teams of threads of one launch.
    MicroBatchLoad const load = family.load(model);
    Names sizes = {"batch.micro", "model.context", "model.vocabulary"};
    sizes.insert(sizes.end(), load.keys.begin(), load.keys.end());
    if (!sound(sizes)) return;
    auto const real = [](std::int64_t value) { return static_cast<double>(value); };
    double const tokens = real(config_.batch.micro) * real(model.context);
    if (tokens * std::max(real(model.vocabulary), load.elements) > 0x1p62) {
      fault(sizes,
            "a micro-batch of {} windows of {} tokens is too large (its arrays pass 2^62 elements); make it smaller",
            config_.batch.micro, model.context);
    } else if (tokens * real(load.teams) >= 0x1p31) { // positions of tokens and numbers of thread teams are 32-bit
      fault(sizes,
            "{} windows × {} tokens × {} teams of threads a token are too many for one micro-batch (2^31 is the "
            "limit); make it smaller",
            config_.batch.micro, model.context, load.teams);
    }
  }

  void data() {
    if (sound({"data.train"}) && config_.data.train.empty()) {
      fault({"data.train"}, "is missing (there is no default); name the training file");
    }
    if (!sound({"data.validation"})) return;
    std::optional<double> const fraction = validation_fraction(config_.data);
    if (fraction && !(*fraction >= 0 && *fraction < 1)) {
      fault({"data.validation"},
            "'{}' is not a fraction of at least 0 and below 1; write one, or the name of a file (./{} if it is called "
            "so)",
            config_.data.validation, config_.data.validation);
    }
    if (fraction && *fraction == 0 && sound({"evaluate.every"}) && config_.evaluate.every > 0) {
      warning({"evaluate.every", "data.validation"},
              "has no effect (data.validation is 0: nothing is held out); give data.validation a fraction or a file");
    }
    if (fraction && *fraction == 0 && sound({"checkpoint.keep_best"}) && config_.checkpoint.keep_best > 0) {
      warning({"checkpoint.keep_best", "data.validation"},
              "has no effect (data.validation is 0: nothing is held out); give data.validation a fraction or a file");
    }
  }

  void batch() {
    auto const& batch = config_.batch;
    Names const both = {"batch.global", "batch.accumulate"};
    if (batch.global && batch.accumulate && sound(both)) {
      fault(both, "stands beside batch.accumulate (each follows from the other and the number of ranks); remove one");
    }
    Names const sizes = {"batch.global", "batch.micro"};
    if (batch.global && sound(sizes) && *batch.global % batch.micro != 0) {
      fault(sizes, "{} is not a multiple of batch.micro = {}; change one", *batch.global, batch.micro);
    }
  }

  void schedule() {
    auto const& schedule = config_.schedule;
    Names const rates = {"schedule.min_lr", "optimizer.lr"};
    if (sound(rates) && schedule.min_lr > config_.optimizer.lr) {
      fault(rates, "{} is above optimizer.lr = {} (the schedule goes down to it); make it smaller", schedule.min_lr,
            config_.optimizer.lr);
    }
    Names const times = {"schedule.warmup", "run.updates"};
    if (!sound(times)) return;
    if (schedule.warmup > config_.run.updates) {
      warning(times, "{} is more than run.updates = {} (the run ends before the peak learning rate); make it smaller",
              schedule.warmup, config_.run.updates);
    } else if (schedule.kind == ScheduleKind::wsd && sound({"schedule.decay"}) &&
               static_cast<double>(schedule.warmup) + schedule.decay * static_cast<double>(config_.run.updates) >
                   static_cast<double>(config_.run.updates)) {
      warning({"schedule.decay", "schedule.warmup", "run.updates"},
              "{} of {} updates and a warm-up of {} overlap; make one smaller", schedule.decay, config_.run.updates,
              schedule.warmup);
    }
  }

  void precision() {
    Names const tf32 = {"precision.tf32", "precision.compute"};
    if (sound(tf32) && config_.precision.tf32 && config_.precision.compute != ComputeType::fp32) {
      warning(tf32, "has no effect (precision.compute is not fp32, and TF32 rounds fp32 operands); leave it out");
    }
    LossScaleConfig const usual;
    LossScaleConfig const& scale = config_.precision.loss_scale;
    Names const scales = {"precision.loss_scale.initial", "precision.compute", "precision.loss_scale.window",
                          "precision.loss_scale.hysteresis"};
    if (sound(scales) && config_.precision.compute != ComputeType::fp16 && scale != usual) {
      warning(scales, "and the keys beside it have no effect (precision.compute is not fp16); leave them out");
    }
    if (!sound({"precision.loss_scale.initial"})) return;
    int exponent = 0;
    if (std::frexp(config_.precision.loss_scale.initial, &exponent) != 0.5) {
      fault({"precision.loss_scale.initial"}, "{} is no power of two (other factors round the gradients); write {}",
            config_.precision.loss_scale.initial, std::ldexp(1.0, exponent - 1));
    }
  }

  void parallel() {
    auto const refuse = [this](char const* key, std::int64_t ranks) {
      if (!sound({key}) || ranks == 1) return;
      fault({key}, "{} is not built yet (each rank computes whole windows with whole matrices); leave it at 1", ranks);
    };
    refuse("parallel.tensor", config_.parallel.tensor);
    refuse("parallel.context", config_.parallel.context);
  }

  void offload() {
    if (!sound({"offload.optimizer"})) return;
    bool const host = config_.offload.optimizer == OffloadTarget::host;
    Names const stage = {"offload.optimizer", "zero.stage"};
    if (host && sound(stage) && config_.zero.stage == 0) {
      fault(stage, "host needs sharded optimizer state (zero.stage is 0); use stage 1, 2 or 3, on one rank too");
    }
    Names const start = {"offload.delayed_update.start", "offload.optimizer"};
    if (!host && sound(start) && config_.offload.delayed_update.start) {
      warning(start, "has no effect (offload.optimizer is none); write host there, or none here");
    }
    Names const ratio = {"offload.ratio", "offload.optimizer"};
    if (!host && sound(ratio) && config_.offload.ratio != OffloadConfig().ratio) {
      warning(ratio, "has no effect (offload.optimizer is none); write host there");
    }
    Names const delay = {"offload.delayed_update.start", "offload.ratio", "offload.optimizer"};
    if (host && sound(delay) && config_.offload.ratio == 0 && config_.offload.delayed_update.start) {
      warning(delay, "has no effect (offload.ratio is 0: the host has nothing to do); give the host a part");
    }
  }

  void reproducibility() {
    if (!sound({"run.reproducibility"}) || config_.run.reproducibility != Reproducibility::topology) return;
    Names const gradients = {"precision.gradients", "run.reproducibility", "precision.compute"};
    bool const has_16_bits =
        config_.precision.compute != ComputeType::fp32 && config_.precision.gradients == GradientType::compute;
    if (sound(gradients) && has_16_bits) {
      fault(gradients,
            "compute does not go with run.reproducibility: topology (16-bit sums are rounded as often as they "
            "are cut between ranks); write fp32");
    }
    Names const batch = {"batch.global", "run.reproducibility"};
    if (sound({"batch.global", "batch.accumulate", "run.reproducibility"}) && !config_.batch.global) {
      warning(batch,
              "is not given, so the batch grows with the number of ranks, and bits with it (run.reproducibility is "
              "topology); give it in the place of batch.accumulate");
    }
  }

  Config const& config_;
  std::set<std::string> unsound_;
  Findings findings_;
};

} // namespace

Findings check(Config const& config, std::set<std::string> const& unread) { return Checker(config, unread).run(); }

std::optional<double> validation_fraction(DataConfig const& data) {
  std::string const& text = data.validation;
  double value = 0;
  char const* const end = text.data() + text.size();
  auto const [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  // Out of range: 1e400 and 1e-400 are numbers too, but not fractions that anyone means.
  return error == std::errc{} ? value : HUGE_VAL;
}

ResolvedBatch resolve_batch(BatchConfig const& batch, std::int64_t ranks) {
  Config config;
  config.data.train = "any";
  config.batch = batch;
  for (auto const& finding : check(config).faults) {
    throw InputError(fmt::format("{}: {}", finding.keys.front(), finding.text));
  }
  std::int64_t const at_once = batch.micro * ranks;
  if (!batch.global) {
    std::int64_t const accumulate = batch.accumulate.value_or(1);
    return {batch.micro, accumulate, at_once * accumulate};
  }
  if (*batch.global % at_once != 0) {
    throw InputError(fmt::format("batch.global: {} windows can't be shared evenly (batch.micro = {} × {} ranks = {} at "
                                 "a time); make it a multiple "
                                 "of {}, or change batch.micro or the number of ranks",
                                 *batch.global, batch.micro, ranks, at_once, at_once));
  }
  return {batch.micro, *batch.global / at_once, *batch.global};
}

void check_ranks(Config const& config, std::int64_t ranks) {
  if (config.run.reproducibility != Reproducibility::topology ||
      std::has_single_bit(static_cast<std::uint64_t>(ranks))) {
    return;
  }
  throw InputError(
      fmt::format("run.reproducibility: topology is not kept on {} ranks (gradients are summed by a binary "
                  "tree that ranks must cut evenly); start 1, 2, 4, 8, … of them, or write rerun",
                  ranks));
}

} // namespace kozero
