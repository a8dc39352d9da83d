#include "io/checkpoint_save.hpp"

#include "comm/agree.hpp"
#include "core/format.hpp"
#include "core/heartbeat.hpp"
#include "core/log.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_order.hpp"
#include "io/checkpoint_retention.hpp"
#include "io/checkpoint_whole.hpp"
#include "io/disk_space.hpp"

#include <algorithm>
#include <random>

namespace kozero {

namespace fs = std::filesystem;

namespace {

/// Waits for the others. Where it failed on some, every rank throws what the first of them says.
void agree(Ranks& ranks, std::int64_t step, Failure failure) {
  try {
    share_failure(ranks, std::move(failure));
  } catch (SharedError const& error) {
    throw SharedError(fmt::format("the checkpoint of update {} is not saved: {}", step, error.what()),
                      error.exit_code());
  }
}

/// Where all ranks hold copies of everything, leaves each rank a part of it to write.
void share_copies(std::vector<checkpoint::TensorShare>& shares, Ranks& ranks) {
  std::int64_t sharded = std::ranges::all_of(shares, &checkpoint::TensorShare::is_whole) ? 0 : 1;
  ranks.sum(std::span(&sharded, 1));
  if (sharded > 0) return;
  for (auto& share : shares) {
    share.reduce_to(Partition(share.interval.size(), ranks.size()).shard(ranks.rank()));
  }
}

/// 16 hexadecimal digits.
std::string new_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// Of the tensors' elements; names, shapes and checksums come on top.
std::int64_t bytes_of(std::vector<checkpoint::TensorShare> const& shares) {
  std::int64_t bytes = 0;
  for (auto const& share : shares) bytes += share.interval.size() * size_of(share.type);
  return bytes;
}

/// What former saves have left goes for it.
void require_room(checkpoint::NewFolder const& folder, std::int64_t bytes) {
  fs::path const& partial = folder.partial();
  auto free = free_disk_bytes(partial);
  if (free && *free < bytes) {
    checkpoint::remove_leftovers(partial.parent_path(), partial);
    free = free_disk_bytes(partial);
  }
  KOZERO_REQUIRE(!free || *free >= bytes, "the disk of '{}' has {} left for {} (nothing was written); {}",
                 partial.string(), format_bytes(*free), format_bytes(bytes), checkpoint::write_advice);
}

} // namespace

struct CheckpointSave::Parts {
  Parts(CheckpointInfo const& of, Retention const& kept, Ranks& all)
      : info(of), retention(kept), ranks(all), step(of.counters.updates_applied) {}

  bool leads() const { return ranks.rank() == 0; }

  template <class Task>
  void together(Task const& task) {
    agree(ranks, step, failure_of(task));
  }

  /// Ranks may have different working folders; rank 0's counts.
  void agree_on_folder(fs::path const& run_dir) {
    std::string checkpoints;
    together([&] {
      if (!leads()) return;
      checkpoints = fs::absolute(run_dir / "checkpoints").lexically_normal().string();
      info.save_id = new_id();
    });
    ranks.broadcast(checkpoints, 0);
    ranks.broadcast(info.save_id, 0);
    folder.emplace(checkpoints, step);
  }

  void divide(std::span<StateEntry const> entries) {
    together([&] { own = checkpoint::join(entries); });
    share_copies(own, ranks);
    whole = checkpoint::gather_whole(own, ranks);
    if (!leads()) whole.clear();
  }

  void start_folder() {
    std::int64_t bytes = bytes_of(own);
    ranks.sum(std::span(&bytes, 1));
    together([&] {
      if (!leads()) return;
      folder->start();
      require_room(*folder, bytes);
    });
  }

  void write(std::function<void()> const& gets_on) const {
    gets_on();
    fs::path const& partial = folder->partial();
    if (leads()) checkpoint::remove_leftovers(partial.parent_path(), partial, gets_on); // the others write meanwhile
    KOZERO_REQUIRE(fs::is_directory(partial),
                   "the folder '{}' that rank 0 made is not there (not one file system?); set run.dir to a folder that "
                   "all ranks share",
                   partial.string());
    fs::path const file = partial / checkpoint::rank_file_name(ranks.rank());
    checkpoint::write_rank_file(file, {ranks.rank(), ranks.size(), step, info.save_id}, own, gets_on);
    checkpoint::sync_to_disk(file);
    if (!leads()) return;
    checkpoint::write_whole(partial / checkpoint::whole_name, whole);
    checkpoint::sync_to_disk(partial / checkpoint::whole_name);
  }

  /// Room for those that still write, and for the rest of the run.
  void remove_written() const noexcept {
    std::error_code ignored;
    fs::remove(folder->partial() / checkpoint::rank_file_name(ranks.rank()), ignored);
  }

  /// checkpoint.h5 comes last: with it the folder is a checkpoint.
  void publish() {
    fs::path const file = folder->partial() / checkpoint::info_name;
    info.generation = checkpoint::next_generation(folder->partial().parent_path());
    checkpoint::write_info(file, info);
    checkpoint::sync_to_disk(file);
    if (folder->publish() == checkpoint::NewFolder::Name::in_memory) return;
    try {
      checkpoint::set_outdated_aside(folder->complete().parent_path(), retention, step);
    } catch (Error const& error) { // the new checkpoint is there all the same
      log::warn("old checkpoints stay: {}", error.what());
    }
  }

  CheckpointInfo info;
  Retention retention;
  Ranks& ranks;
  std::int64_t step;
  std::optional<checkpoint::NewFolder> folder;
  std::vector<checkpoint::TensorShare> own;
  std::vector<checkpoint::WholeTensor> whole; // rank 0's
  Failure failure = {"it was not written", exit_failed};
};

CheckpointSave::CheckpointSave(fs::path const& run_dir, CheckpointInfo const& info, std::span<StateEntry const> entries,
                               Retention const& retention, Ranks& ranks)
    : parts_(std::make_unique<Parts>(info, retention, ranks)) {
  KOZERO_REQUIRE(retention.newest >= 1,
                 "checkpoint.keep is {} (the newest checkpoint always stays); set it to 1 or more", retention.newest);
  parts_->info.ranks = ranks.size();
  parts_->agree_on_folder(run_dir);
  parts_->divide(entries);
  try {
    parts_->start_folder();
  } catch (Error const&) {
    if (parts_->leads()) parts_->folder->discard();
    throw;
  }
}

CheckpointSave::~CheckpointSave() = default;

void CheckpointSave::write(std::function<void()> const& gets_on, std::function<void()> const& also) noexcept {
  parts_->failure = failure_of([&] {
    parts_->write(gets_on);
    also();
  });
  if (parts_->failure.exit_code != exit_done) parts_->remove_written();
}

fs::path CheckpointSave::commit(std::function<std::string()> const& state_hash) {
  try {
    agree(parts_->ranks, parts_->step, parts_->failure);
    parts_->info.state_hash = state_hash();
    parts_->together([&] {
      if (parts_->leads()) parts_->publish();
    });
  } catch (Error const&) {
    if (parts_->leads()) parts_->folder->discard();
    throw;
  }
  return parts_->folder->complete();
}

fs::path save_checkpoint(fs::path const& run_dir, CheckpointInfo const& info, std::span<StateEntry const> entries,
                         Retention const& retention, Ranks& ranks) {
  CheckpointSave save(run_dir, info, entries, retention, ranks);
  save.write([] { heartbeat().beat(); });
  auto const folder = save.commit([&] { return info.state_hash; });
  if (ranks.rank() == 0) remove_leftovers(folder.parent_path());
  return folder;
}

void remove_leftovers(fs::path const& checkpoints) {
  checkpoint::remove_leftovers(checkpoints, {}, [] { heartbeat().beat(); });
}

} // namespace kozero
