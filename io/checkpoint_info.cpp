// checkpoint.h5: where the run stood, and its deck.
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_format.hpp"

#include <cmath>

namespace kozero::checkpoint {

namespace fs = std::filesystem;

namespace {

/// No run counts so far; sums of such counts are far from 64 bits.
constexpr std::int64_t most_counted = std::int64_t{1} << 50;

constexpr char const* training_data_name = "training_data";
constexpr char const* validation_data_name = "validation_data";

std::int64_t get_count(h5::Job const& job, hid_t file, char const* name, std::int64_t least = 0) {
  std::int64_t const count = h5::get_integer(job, file, name);
  KOZERO_REQUIRE(count >= least && count <= most_counted, "{} (its {} is {}, which cannot be); {}", job.problem, name,
                 count, job.advice);
  return count;
}

double get_factor(h5::Job const& job, hid_t file, char const* name) {
  double const factor = h5::get_number(job, file, name);
  KOZERO_REQUIRE(std::isfinite(factor), "{} (its {} is {}, which cannot be); {}", job.problem, name, factor,
                 job.advice);
  return factor;
}

// Attributes that only some runs have.

void put_scales(h5::Job const& job, hid_t file, CheckpointInfo const& info) {
  if (auto const& state = info.loss_scale) {
    h5::put(job, file, "loss_scale", state->scale);
    h5::put(job, file, "loss_scale_clean_in_row", state->clean_in_row);
    h5::put(job, file, "loss_scale_overflows", state->overflows);
  }
  if (info.pending_gradient_scale) h5::put(job, file, "pending_gradient_scale", *info.pending_gradient_scale);
}

void get_scales(h5::Job const& job, hid_t file, CheckpointInfo& info) {
  if (h5::has_attribute(job, file, "loss_scale")) {
    info.loss_scale = LossScaleState{.scale = get_factor(job, file, "loss_scale"),
                                     .clean_in_row = get_count(job, file, "loss_scale_clean_in_row"),
                                     .overflows = get_count(job, file, "loss_scale_overflows")};
  }
  if (h5::has_attribute(job, file, "pending_gradient_scale")) {
    info.pending_gradient_scale = get_factor(job, file, "pending_gradient_scale");
  }
}

void put_metrics(h5::Job const& job, hid_t file, std::optional<MetricsMark> const& mark) {
  if (!mark) return;
  h5::put(job, file, "metrics_bytes", mark->bytes);
  h5::put(job, file, "metrics_hash", mark->hash);
}

std::optional<MetricsMark> get_metrics(h5::Job const& job, hid_t file) {
  if (!h5::has_attribute(job, file, "metrics_bytes")) return {};
  return MetricsMark{get_count(job, file, "metrics_bytes"), h5::get_text(job, file, "metrics_hash")};
}

} // namespace

std::string get_save_id(h5::Job const& job, hid_t file) {
  return h5::has_attribute(job, file, save_id_name) ? h5::get_text(job, file, save_id_name) : "";
}

namespace {

std::int64_t get_generation(h5::Job const& job, hid_t file) {
  return h5::has_attribute(job, file, "generation") ? get_count(job, file, "generation", 1) : 0;
}

void put_data(h5::Job const& job, hid_t file, std::string const& name, std::optional<DataFingerprint> const& data) {
  if (!data) return;
  h5::put(job, file, (name + "_bytes").c_str(), data->bytes);
  h5::put(job, file, (name + "_tokens").c_str(), data->tokens);
  h5::put(job, file, (name + "_hash").c_str(), data->hash);
}

std::optional<DataFingerprint> get_data(h5::Job const& job, hid_t file, std::string const& name) {
  if (!h5::has_attribute(job, file, (name + "_hash").c_str())) return {};
  return DataFingerprint{get_count(job, file, (name + "_bytes").c_str()),
                         get_count(job, file, (name + "_tokens").c_str()),
                         h5::get_text(job, file, (name + "_hash").c_str())};
}

constexpr char const* held_out_loss_name = "held_out_loss";

/// One that is not finite is none: it is no better than any other.
std::optional<double> get_held_out_loss(h5::Job const& job, hid_t file) {
  if (!h5::has_attribute(job, file, held_out_loss_name)) return {};
  double const loss = h5::get_number(job, file, held_out_loss_name);
  return std::isfinite(loss) ? std::optional(loss) : std::nullopt;
}

} // namespace

void write_info(fs::path const& path, CheckpointInfo const& info) {
  auto const job = writing(path);
  auto file = h5::create_file(path, job);
  put_format(job, file.id(), info_format);
  h5::put(job, file.id(), "version", info.version);
  h5::put(job, file.id(), "generation", info.generation);
  h5::put(job, file.id(), save_id_name, info.save_id);
  h5::put(job, file.id(), "batches_seen", info.counters.batches_seen);
  h5::put(job, file.id(), "updates_applied", info.counters.updates_applied);
  h5::put(job, file.id(), "updates_skipped", info.counters.updates_skipped);
  h5::put(job, file.id(), "ranks", info.ranks);
  h5::put(job, file.id(), "global_batch", info.global_batch);
  h5::put(job, file.id(), "state_hash", info.state_hash);
  h5::put(job, file.id(), "text", std::int64_t{info.text});
  put_scales(job, file.id(), info);
  put_metrics(job, file.id(), info.metrics);
  put_data(job, file.id(), training_data_name, info.training_data);
  put_data(job, file.id(), validation_data_name, info.validation_data);
  if (info.evaluation_due) h5::put(job, file.id(), "evaluation_due", std::int64_t{1});
  if (info.held_out_loss) h5::put(job, file.id(), held_out_loss_name, *info.held_out_loss);
  h5::put_long_text(job, file.id(), "deck", info.deck);
  file.close(job);
}

CheckpointInfo read_info(fs::path const& path) {
  auto const job = reading(path);
  auto const file = h5::open_file(path, job);
  CheckpointInfo info;
  info.format_version = require_format(job, path, file.id(), info_format);
  info.version = h5::get_text(job, file.id(), "version");
  info.generation = get_generation(job, file.id());
  info.save_id = get_save_id(job, file.id());
  info.counters.batches_seen = get_count(job, file.id(), "batches_seen");
  info.counters.updates_applied = get_count(job, file.id(), "updates_applied");
  info.counters.updates_skipped = get_count(job, file.id(), "updates_skipped");
  info.ranks = get_count(job, file.id(), "ranks", 1);
  info.global_batch = get_count(job, file.id(), "global_batch");
  // The place in the data is their product.
  KOZERO_REQUIRE(info.global_batch == 0 || info.counters.batches_seen <= (std::int64_t{1} << 62) / info.global_batch,
                 "{} (its {} batches of {} windows cannot be); {}", job.problem, info.counters.batches_seen,
                 info.global_batch, job.advice);
  info.state_hash = h5::get_text(job, file.id(), "state_hash");
  info.text = h5::get_integer(job, file.id(), "text") != 0;
  get_scales(job, file.id(), info);
  info.metrics = get_metrics(job, file.id());
  info.training_data = get_data(job, file.id(), training_data_name);
  info.validation_data = get_data(job, file.id(), validation_data_name);
  info.evaluation_due = h5::has_attribute(job, file.id(), "evaluation_due");
  info.held_out_loss = get_held_out_loss(job, file.id());
  info.deck = h5::get_long_text(reading(path, "deck"), file.id(), "deck");
  return info;
}

std::int64_t read_generation(fs::path const& path) {
  auto const job = reading(path);
  auto const file = h5::open_file(path, job);
  require_format(job, path, file.id(), info_format);
  return get_generation(job, file.id());
}

} // namespace kozero::checkpoint
