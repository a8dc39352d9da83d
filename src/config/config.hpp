#pragma once
// Every key of an input deck with its default and unit. Plain structs: what is legal for a key and what it means stands
// in config/schema, checking one field against another is config/check, reading YAML is io/deck. A section of the deck
// is one struct; the names are the deck's. A new field needs its line in config/schema.cpp, and nothing else.

#include "config/family_keys.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kozero {

/// Where the same training has the same bits: run again as it was; or also on 1, 2, 4, … ranks, at any stage, with
/// offload or without.
enum class Reproducibility { rerun, topology };

struct RunConfig {
  std::string name = "run";
  std::string dir = "runs/run";       // everything that the run writes goes here
  std::int64_t seed = 1337;           // of parameters and data order
  std::int64_t updates = 100;         // optimizer steps, skipped ones not counted
  std::optional<double> time_limit_s; // key time_limit: save and leave with exit status 75 after so many seconds
  std::optional<double> before_job_end_s = 120; // key before_job_end: so long before the batch job ends, likewise
  std::int64_t log_every = 10;                  // updates between two lines of the log
  std::optional<double> stall_limit_s = 600; // key stall_limit: end all ranks when one does nothing for so many seconds
  bool profile = false;                      // write when everything began and ended
  Reproducibility reproducibility = Reproducibility::rerun;
  friend bool operator==(RunConfig const&, RunConfig const&) = default;
};

/// Attention by a library where it can, or by our own tile kernel in any case.
enum class AttentionBy { automatic, tiles };

/// The shape of a model: what every family has, and a struct of the family's own keys (config/model_family.hpp).
struct ModelConfig {
  ModelConfig(); // the first family that was registered, with its defaults
  explicit ModelConfig(std::string_view family);
  std::string family;            // for good: another one has other keys
  std::string size;              // a named size of the family, or empty: the keys below
  std::int64_t context = 128;    // T
  std::int64_t vocabulary = 256; // V
  AttentionBy attention = AttentionBy::automatic;
  FamilyKeys own;
  friend bool operator==(ModelConfig const&, ModelConfig const&) = default;
};

enum class DataFormat { automatic, text, uint16, uint32, llmc };

struct DataConfig {
  std::string train;               // a file
  std::string validation = "0.05"; // a file, or the fraction of the training file's end that is held out
  DataFormat format = DataFormat::automatic;
  friend bool operator==(DataConfig const&, DataConfig const&) = default;
};

struct BatchConfig {
  std::int64_t micro = 8;                 // windows of one rank's forward pass
  std::optional<std::int64_t> accumulate; // micro-batches a rank and update; 1 if `global` does not say otherwise
  std::optional<std::int64_t> global;     // windows an update, all ranks: instead of `accumulate`
  friend bool operator==(BatchConfig const&, BatchConfig const&) = default;
};

struct OptimizerConfig {
  double lr = 1e-3; // peak learning rate
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.1;        // on matrices
  std::optional<double> clip = 1.0; // largest gradient norm
  std::int64_t max_skips = 10;      // updates skipped in a row before the run gives up
  friend bool operator==(OptimizerConfig const&, OptimizerConfig const&) = default;
};

enum class ScheduleKind { constant, linear, cosine, wsd };

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::cosine;
  std::int64_t warmup = 0; // updates from 0 to the peak, linear
  double min_lr = 0;       // at the end
  double decay = 0.2;      // wsd: fraction of the updates that the final descent takes
  friend bool operator==(ScheduleConfig const&, ScheduleConfig const&) = default;
};

enum class ComputeType { fp32, bf16, fp16 };
enum class GradientType { fp32, compute };

/// Of fp16 alone: the loss is multiplied by a power of two, so that small gradients do not become 0 in fp16.
struct LossScaleConfig {
  double initial = 65536;      // a power of two
  std::int64_t window = 1000;  // updates without an overflow after which it is doubled
  std::int64_t hysteresis = 2; // overflows since it was last doubled, from which on each halves it
  friend bool operator==(LossScaleConfig const&, LossScaleConfig const&) = default;
};

struct PrecisionConfig {
  ComputeType compute = ComputeType::bf16;
  GradientType gradients = GradientType::fp32;
  bool tf32 = false; // fp32 operands of products are rounded to TF32
  LossScaleConfig loss_scale;
  friend bool operator==(PrecisionConfig const&, PrecisionConfig const&) = default;
};

struct ZeroConfig {
  std::int64_t stage = 0; // 0: data parallel, 1: + optimizer state, 2: + gradients, 3: + parameters
  friend bool operator==(ZeroConfig const&, ZeroConfig const&) = default;
};

/// What moves the model's data between ranks. Bits are the same by all.
enum class Transport { automatic, nccl, mpi, mpi_device };

/// Ranks that hold one model together instead of one each, and how ranks exchange. ProcessGrid alone reads it.
struct ParallelConfig {
  std::int64_t tensor = 1;  // ranks that share each matrix
  std::int64_t context = 1; // ranks that share each window
  Transport transport = Transport::automatic;
  friend bool operator==(ParallelConfig const&, ParallelConfig const&) = default;
};

enum class OffloadTarget { none, host };

struct DelayedUpdateConfig {
  std::optional<std::int64_t> start; // the first update, from 1, that is applied while the next batch is computed
  friend bool operator==(DelayedUpdateConfig const&, DelayedUpdateConfig const&) = default;
};

/// ZeRO-Offload. The other keys mean something with `host` alone.
struct OffloadConfig {
  OffloadTarget optimizer = OffloadTarget::none;
  double ratio = 1.0; // fraction of the optimizer state that lives on the host
  DelayedUpdateConfig delayed_update;
  bool delays() const { return optimizer == OffloadTarget::host && ratio > 0 && delayed_update.start.has_value(); }
  friend bool operator==(OffloadConfig const&, OffloadConfig const&) = default;
};

enum class Recompute { none, unit };

struct ActivationsConfig {
  Recompute recompute = Recompute::none;
  friend bool operator==(ActivationsConfig const&, ActivationsConfig const&) = default;
};

struct MemoryConfig {
  std::optional<std::int64_t> device_limit_bytes; // key device_limit
  std::optional<std::int64_t> host_limit_bytes;   // key host_limit
  friend bool operator==(MemoryConfig const&, MemoryConfig const&) = default;
};

/// How often something happens: every so many updates or, where there are seconds, every so many of these.
struct Every {
  Every(std::int64_t n_updates = 0) : updates(n_updates) {}
  std::int64_t updates = 0; // 0: never
  std::optional<double> seconds;
  friend bool operator==(Every const&, Every const&) = default;
};

enum class SaveFailure { go_on, stop };

struct CheckpointConfig {
  Every every;                               // 0: at the end alone
  std::int64_t keep = 3;                     // newest ones that stay
  std::int64_t keep_best = 0;                // and those of the least held-out loss
  SaveFailure on_error = SaveFailure::go_on; // what a save that fails does to the run
  bool in_background = false;                // key async: a copy of the state is written while training goes on
  friend bool operator==(CheckpointConfig const&, CheckpointConfig const&) = default;
};

struct MetricsConfig {
  bool tensorboard = false; // event files beside metrics.jsonl
  friend bool operator==(MetricsConfig const&, MetricsConfig const&) = default;
};

struct EvaluateConfig {
  std::int64_t every = 0;    // updates; 0: at the end alone
  std::int64_t batches = 10; // batches of the size of an update's
  friend bool operator==(EvaluateConfig const&, EvaluateConfig const&) = default;
};

struct Config {
  RunConfig run;
  ModelConfig model;
  DataConfig data;
  BatchConfig batch;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  PrecisionConfig precision;
  ZeroConfig zero;
  ParallelConfig parallel;
  OffloadConfig offload;
  ActivationsConfig activations;
  MemoryConfig memory;
  CheckpointConfig checkpoint;
  MetricsConfig metrics;
  EvaluateConfig evaluate;
  friend bool operator==(Config const&, Config const&) = default;
};

} // namespace kozero
