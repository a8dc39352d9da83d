#include "config/schema.hpp"

#include "config/model_family.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <iterator>

namespace kozero {

namespace {

constexpr double most_int32 = std::numeric_limits<std::int32_t>::max();

constexpr Limits anything{};
constexpr Limits positive{.low = 0, .without_low = true};
constexpr Limits at_least_0{.low = 0};
constexpr Limits at_least_1{.low = 1};
constexpr Limits fraction{.low = 0, .high = 1};
constexpr Limits below_1{.low = 0, .high = 1, .without_high = true};
// Sizes are so limited that counts of parameters fit 64 bits; those of activations are looked at in config/check.
constexpr Limits size32{.low = 1, .high = most_int32};
constexpr Limits size20{.low = 1, .high = 1 << 20};
constexpr Limits steps{.low = 0, .high = 1e12};

/// Words in the order of the enumerators.
template <class Enum>
Choice choice(Enum& field, std::vector<std::string> words) {
  auto const get = [&field, words] { return words.at(static_cast<std::size_t>(field)); };
  auto const set = [&field, words](std::string const& word) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == word) field = static_cast<Enum>(i);
    }
  };
  return {std::move(words), get, set};
}

/// A configuration is made for its family (config/config.hpp): the word of another one changes nothing.
Choice family_choice(ModelConfig const& model) {
  std::vector<std::string> words;
  for (auto const& family : model_families()) words.push_back(family->name());
  return {std::move(words), [&model] { return model.family; }, [](std::string const&) {}};
}

/// The empty string is the word none.
Choice size_choice(ModelConfig& model) {
  std::vector<std::string> words = {"none"};
  for (auto const& size : model_family(model.family).sizes()) words.push_back(size.name);
  auto const get = [&model] { return model.size.empty() ? "none" : model.size; };
  auto const set = [&model](std::string const& word) { model.size = word == "none" ? "" : word; };
  return {std::move(words), get, set};
}

/// The section `model`: what every family has, then the family's own.
std::vector<Key> model_keys(ModelConfig& model) {
  using enum Severity;
  std::vector<Key> keys = {
      {"model.family", family_choice(model), anything, forbidden, "architecture; the tables below have its own keys"},
      {"model.size", size_choice(model), anything, harmless, "a published shape of the family; it sets other keys"},
      {"model.context", &model.context, size32, forbidden, "tokens of a window (T), and positions of the model"},
      {"model.vocabulary", &model.vocabulary, size32, forbidden,
       "token ids (V): 256 for bytes, else those of the file's tokenizer"},
      {"model.attention", choice(model.attention, {"auto", "tiles"}), anything, changes_numerics,
       "auto: on a GPU by cuDNN, where the program was built with it and it takes the shape; tiles: by the kernel that "
       "runs everywhere"}};
  for (Key& key : model_family(model.family).keys(model.own)) {
    key.path = "model." + key.path;
    keys.push_back(std::move(key));
  }
  return keys;
}

} // namespace

std::vector<Section> sections() {
  return {{"run", "What the run is called, where it writes, how long it goes on."},
          {"model", "The shape of the model. A key that stands beside `size` wins over it."},
          {"data", "What is learned, and what it is tested on."},
          {"batch", "How many windows of `model.context` tokens an update sees: micro × accumulate × ranks."},
          {"optimizer", "AdamW with decoupled weight decay."},
          {"schedule", "The learning rate over the updates."},
          {"precision", "The types of the computation. The optimizer's state is fp32 always."},
          {"zero", "What the data-parallel ranks share instead of each holding it whole."},
          {"parallel", "Ranks that hold one model together; the rest of the ranks is data-parallel."},
          {"offload", "Optimizer state and work on the host (ZeRO-Offload). The other keys mean something with "
                      "`optimizer: host` alone."},
          {"activations", "What forward keeps for backward."},
          {"memory", "Budgets. Passing one is an error that says what to change; they hold on CPU builds too."},
          {"checkpoint", "What a later run can go on from."},
          {"metrics", "What is written of each batch, beside metrics.jsonl."},
          {"evaluate", "The loss on data that is not trained on."}};
}

std::vector<Key> keys_of(Config& c) {
  using enum Severity;
  std::vector<Key> keys = {
      {"run.name", &c.run.name, anything, harmless, "what logs and metrics call the run"},
      {"run.dir", &c.run.dir, anything, harmless, "folder that everything the run writes goes to"},
      {"run.seed", &c.run.seed, at_least_0, forbidden, "of the first parameters and of the order of the data"},
      {"run.updates", &c.run.updates, steps, changes_numerics,
       "optimizer steps of the whole run, skipped ones not counted; the schedule ends there"},
      {"run.time_limit", &c.run.time_limit_s, positive, harmless,
       "after so long, save and leave with exit status 75, to be resumed", Measure::seconds},
      {"run.before_job_end", &c.run.before_job_end_s, positive, harmless,
       "so long before the end of the batch job, where the scheduler tells it, do the same; none: do not look",
       Measure::seconds},
      {"run.log_every", &c.run.log_every, at_least_0, harmless, "updates between two lines of the log; 0: none"},
      {"run.stall_limit", &c.run.stall_limit_s, Limits{.low = 1}, harmless,
       "end the run when a rank does nothing for so long; none: wait for it for ever", Measure::seconds},
      {"run.profile", &c.run.profile, anything, harmless,
       "write a trace of the last spans of units, messages and the host, to be seen in Perfetto"},
      {"run.reproducibility", choice(c.run.reproducibility, {"rerun", "topology"}), anything, changes_numerics,
       "where a run's bits are the same. rerun: on as many ranks with the same deck; topology: on 1, 2, 4, … ranks, at "
       "any stage, with offload or without, resumed from one on the other, for one `batch.global` and `batch.micro`"},
  };
  std::ranges::move(model_keys(c.model), std::back_inserter(keys));
  std::vector<Key> rest = {
      {"data.train", &c.data.train, anything, changes_numerics, "the training file; it has no default"},
      {"data.validation", &c.data.validation, anything, changes_numerics,
       "a file, or the fraction of the training file's end that is held out (0: none); a file whose name is a number "
       "is written as ./0.5"},
      {"data.format", choice(c.data.format, {"auto", "text", "uint16", "uint32", "llmc"}), anything, changes_numerics,
       "text is bytes; uint16 and uint32 are raw token ids (nanoGPT); llmc has a header; auto looks at the file"},

      {"batch.micro", &c.batch.micro, size20, changes_numerics,
       "windows that one rank sends through the model at once"},
      {"batch.accumulate", &c.batch.accumulate, size20, changes_numerics,
       "micro-batches a rank and update; none: 1, or what `global` asks for"},
      {"batch.global", &c.batch.global, size32, changes_numerics,
       "windows an update over all ranks, instead of `accumulate`"},

      {"optimizer.lr", &c.optimizer.lr, positive, changes_numerics, "peak learning rate"},
      {"optimizer.betas", &c.optimizer.betas, below_1, changes_numerics, "decay of the first and the second moment"},
      {"optimizer.eps", &c.optimizer.eps, Limits{.low = 1e-30}, changes_numerics,
       "added to the root of the second moment"},
      {"optimizer.weight_decay", &c.optimizer.weight_decay, at_least_0, changes_numerics,
       "on tensors of rank 2 and more: no biases, no norms"},
      {"optimizer.clip", &c.optimizer.clip, positive, changes_numerics,
       "largest norm of the whole gradient; none: no clipping"},
      {"optimizer.max_skips", &c.optimizer.max_skips, at_least_1, harmless,
       "updates skipped in a row (gradient not finite) before the run stops"},

      {"schedule.kind", choice(c.schedule.kind, {"constant", "linear", "cosine", "wsd"}), anything, changes_numerics,
       "how the rate falls from `optimizer.lr` to `min_lr`; wsd: constant, then down over the last `decay`"},
      {"schedule.warmup", &c.schedule.warmup, steps, changes_numerics, "updates of linear rise to the peak"},
      {"schedule.min_lr", &c.schedule.min_lr, at_least_0, changes_numerics,
       "learning rate at the end; at most `optimizer.lr`"},
      {"schedule.decay", &c.schedule.decay, fraction, changes_numerics,
       "wsd: fraction of the updates that the last descent takes"},

      {"precision.compute", choice(c.precision.compute, {"fp32", "bf16", "fp16"}), anything, changes_numerics,
       "parameters, activations and matrix products"},
      {"precision.gradients", choice(c.precision.gradients, {"fp32", "compute"}), anything, changes_numerics,
       "sums of gradients over micro-batches and ranks; compute: the type of `compute`, half the memory and traffic"},
      {"precision.tf32", &c.precision.tf32, anything, changes_numerics,
       "fp32 compute on NVIDIA's devices: matrix products round their operands to TF32, 10 bits after the point, which "
       "tensor cores take; refused where products are another library's than cuBLASLt"},
      {"precision.loss_scale.initial", &c.precision.loss_scale.initial, Limits{.low = 1, .high = 0x1p24},
       changes_numerics, "fp16 alone: what the loss is multiplied by at first; a power of two"},
      {"precision.loss_scale.window", &c.precision.loss_scale.window, at_least_1, changes_numerics,
       "updates in a row without an overflow after which the scale is doubled"},
      {"precision.loss_scale.hysteresis", &c.precision.loss_scale.hysteresis, at_least_1, changes_numerics,
       "the overflow, counted since the scale was last doubled, from which on each halves it"},

      {"zero.stage", &c.zero.stage, Limits{.low = 0, .high = 3}, changes_numerics,
       "0: nothing is shared; 1: optimizer state; 2: and gradients; 3: and parameters. Harmless with "
       "`run.reproducibility: topology`"},

      {"parallel.tensor", &c.parallel.tensor, size20, changes_numerics,
       "ranks that share each matrix; above 1 is not built yet"},
      {"parallel.context", &c.parallel.context, size20, changes_numerics,
       "ranks that share each window; above 1 is not built yet"},
      {"parallel.transport", choice(c.parallel.transport, {"auto", "nccl", "mpi", "mpi-device"}), anything, harmless,
       "what moves parameters and gradients between ranks, with the same bits. nccl: between devices; mpi: through "
       "host "
       "memory; mpi-device: by an MPI library that reaches device memory; auto: nccl where it can be, else mpi"},

      {"offload.optimizer", choice(c.offload.optimizer, {"none", "host"}), anything, changes_numerics,
       "where master weights and moments live and are updated; host needs zero.stage 1, 2 or 3. Harmless without a "
       "delay"},
      {"offload.ratio", &c.offload.ratio, fraction, changes_numerics,
       "fraction of that state that lives on the host. Harmless without a delay"},
      {"offload.delayed_update.start", &c.offload.delayed_update.start, at_least_1, changes_numerics,
       "the first update that the host applies while the next batch is computed (40 in the paper); none: never"},

      {"activations.recompute", choice(c.activations.recompute, {"none", "unit"}), anything, harmless,
       "unit: backward computes each layer's forward again instead of keeping it; same bits, less memory"},

      {"memory.device_limit", &c.memory.device_limit_bytes, positive, harmless, "most bytes a rank on the device",
       Measure::bytes},
      {"memory.host_limit", &c.memory.host_limit_bytes, positive, harmless,
       "most bytes a rank on the host; none: what the host and its control groups have left", Measure::bytes},

      {"checkpoint.every", &c.checkpoint.every, at_least_0, harmless,
       "updates or time between two; 0: at the end alone"},
      {"checkpoint.keep", &c.checkpoint.keep, at_least_1, harmless, "newest ones that stay"},
      {"checkpoint.keep_best", &c.checkpoint.keep_best, at_least_0, harmless,
       "ones of the least held-out loss that stay beside them; before each save the run evaluates then"},
      {"checkpoint.on_error", choice(c.checkpoint.on_error, {"continue", "stop"}), anything, harmless,
       "a save that fails, and is not the last: continue warns and saves again when that is due, stop ends the run"},
      {"checkpoint.async", &c.checkpoint.in_background, anything, harmless,
       "write a copy of the state while training goes on; the copy takes as much host memory as the rank's state"},

      {"metrics.tensorboard", &c.metrics.tensorboard, anything, harmless,
       "write event files for TensorBoard beside metrics.jsonl"},

      {"evaluate.every", &c.evaluate.every, at_least_0, harmless, "updates between two; 0: at the end alone"},
      {"evaluate.batches", &c.evaluate.batches, size32, harmless, "batches of the size of an update's"},
  };
  std::ranges::move(rest, std::back_inserter(keys));
  return keys;
}

std::string text_of(Config config, std::string const& path) {
  for (auto const& key : keys_of(config)) {
    if (key.path == path) return text_of(key);
  }
  throw Error(fmt::format("'{}' is no key of a deck (a fault of kozero); please report it", path));
}

} // namespace kozero
