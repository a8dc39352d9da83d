#pragma once
#include "comm/ranks.hpp"
#include "io/data_fingerprint.hpp"
#include "io/metrics_lineage.hpp"
#include "io/state_entry.hpp"
#include "layout/former_tensor.hpp"
#include "optim/loss_scale.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// The three counters that say where a run stands.
struct Counters {
  std::int64_t batches_seen = 0;    // moves the data position
  std::int64_t updates_applied = 0; // moves the learning rate and Adam's t
  std::int64_t updates_skipped = 0;
};

/// What is written. Versions from 1 on are read; what they had otherwise says doc/checkpoints.md.
inline constexpr std::int64_t checkpoint_format_version = 2;

/// What a checkpoint says beside its tensors.
struct CheckpointInfo {
  Counters counters;
  std::string deck;                              // resolved, YAML
  std::int64_t ranks = 1;                        // that wrote it; saving puts their number here
  std::int64_t generation = 0;                   // the how-manieth save of its folder; saving puts it here
  std::string save_id;                           // no other save's, in each of its files; saving puts it here
  std::int64_t global_batch = 0;                 // windows an update
  std::string state_hash;                        // of the format_version's definition
  std::string version;                           // of kozero
  bool text = false;                             // tokens are bytes of text
  std::optional<LossScaleState> loss_scale = {}; // fp16 alone
  /// Of a delayed update, whose gradient is among the entries as kind "gradient": the factor to multiply that by.
  std::optional<double> pending_gradient_scale = {};
  /// The metrics of the run, up to here; none in older files.
  std::optional<MetricsMark> metrics = {};
  /// The run owes an evaluation of this state: it was due, and not made when this was saved.
  bool evaluation_due = false;
  /// Of this state, where it was evaluated before it was saved.
  std::optional<double> held_out_loss = {};
  /// The data that the run reads; none in older files, and of validation where that is a part of the training file.
  std::optional<DataFingerprint> training_data = {}, validation_data = {};
  std::int64_t format_version = checkpoint_format_version; // of the files; saving writes the one of today
};

/// Which checkpoints of a folder stay when a new one has come.
struct Retention {
  Retention(std::int64_t keep_newest, std::int64_t keep_best = 0) : newest(keep_newest), best(keep_best) {}
  std::int64_t newest; // so many, the new one among them
  std::int64_t best;   // and these of all with the least held-out loss
};

/// Writes <run_dir>/checkpoints/step-00000100/, moves the link `latest` there, then removes those older ones that are
/// not to stay. The folder's name counts updates applied. Returns the folder, the same absolute path on all ranks.
///
/// Collective. Every rank gives its own entries, for all (name, kind), with an empty interval where it holds nothing.
/// Over all ranks each element comes once. If instead every rank holds all tensors whole, these are copies and each
/// rank writes its part of them. What a rank holds of a (name, kind) is one interval; it may be cut into several
/// entries, in any order, empty ones among them, in memory of any space.
/// Work that still writes to the entries must have been waited for, except kernels and copies of Kokkos.
///
/// Room on the disk is asked for first. Files are complete and on disk before the folder gets its name. If a rank
/// fails, all ranks throw the same SharedError, which names the rank and its cause; earlier checkpoints and `latest`
/// are then as before.
std::filesystem::path save_checkpoint(std::filesystem::path const& run_dir, CheckpointInfo const& info,
                                      std::span<StateEntry const> entries, Retention const& retention, Ranks& ranks);

/// How many complete checkpoints a run's folder has.
std::int64_t count_checkpoints(std::filesystem::path const& run_dir);

/// Where a run keeps its checkpoint of so many updates.
std::filesystem::path checkpoint_path(std::filesystem::path const& run_dir, std::int64_t updates_applied);

/// The folder that a user means by `path`: a checkpoint folder, a run folder or its checkpoints folder (the one
/// that was saved last), or …/latest. Links are followed, so the answer stays the same when `latest` moves on.
std::filesystem::path resolve_checkpoint(std::filesystem::path const& path);

/// Whether `checkpoint` is what the link `latest` of the run's folder leads to. As rank 0 sees it, on all ranks: it may
/// decide what they do together. Collective.
bool is_latest_checkpoint(std::filesystem::path const& checkpoint, std::filesystem::path const& run_dir, Ranks& ranks);

/// Which part of a checkpoint a reader will want: rank `rank` of `ranks` reads about that part of each tensor. It is
/// looked for in the files of the writers of the same part first; that saves time and nothing else.
struct ReaderPlace {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
};

/// Reads intervals of tensors out of the files of all ranks that wrote a checkpoint. Not collective: any process reads
/// what it likes. Opens files as they are needed; everything read is verified against its checksums.
///
///     CheckpointReader reader(resolve_checkpoint(run_dir));
///     reader.read(entries);                                            // files of today
///     reader.read(entries, former_tensors(reader.info().format_version));
class CheckpointReader {
public:
  explicit CheckpointReader(std::filesystem::path const& folder, ReaderPlace place = {});
  ~CheckpointReader();
  CheckpointReader(CheckpointReader const&) = delete;
  CheckpointReader& operator=(CheckpointReader const&) = delete;

  CheckpointInfo const& info() const;
  /// Fills the data of all entries; of each, the checkpoint must hold the whole interval of a tensor of that name,
  /// kind, type and shape, however it was cut when it was saved, or of the one that it stood in when the files were
  /// written. A gradient may be of another floating-point type; it is converted. After an Error the memory means
  /// nothing.
  ///
  /// Memory for a tile of a file; a transposed tensor is read whole, once for all its entries of a kind.
  void read(std::span<StateEntry const> entries, FormerTensors const& former = {}) const;
  void read(StateEntry const& entry, FormerTensors const& former = {}) const;

private:
  struct Files;
  std::unique_ptr<Files> files_;
};

} // namespace kozero
