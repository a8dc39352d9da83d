#include "io/checkpoint.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_order.hpp"

#include <algorithm>

namespace kozero {

namespace fs = std::filesystem;

namespace {

/// Runs the task on this rank and waits for the others. If it failed anywhere, every rank throws the first failure.
template <class Task>
void together(Ranks& ranks, std::int64_t step, Task&& task) {
  std::string failure;
  try {
    task();
  } catch (std::exception const& error) {
    failure = error.what();
    if (failure.empty()) failure = "no reason given";
  }
  std::int64_t failed = failure.empty() ? 0 : 1;
  ranks.sum(std::span(&failed, 1));
  if (failed == 0) return;
  auto const failures = ranks.gather(failure);
  auto const first = std::find_if(failures.begin(), failures.end(), [](auto const& text) { return !text.empty(); });
  throw SharedError(
      fmt::format("the checkpoint of update {} is not saved: rank {}: {}", step, first - failures.begin(), *first));
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

} // namespace

fs::path save_checkpoint(fs::path const& run_dir, CheckpointInfo const& info, std::span<StateEntry const> entries,
                         std::int64_t keep, Ranks& ranks) {
  KOZERO_REQUIRE(keep >= 1, "checkpoint.keep is {} (the newest checkpoint always stays); set it to 1 or more", keep);
  bool const leads = ranks.rank() == 0;
  std::int64_t const step = info.counters.updates_applied;

  // Ranks may have different working folders; rank 0's counts.
  std::string checkpoints;
  together(ranks, step, [&] {
    if (leads) checkpoints = fs::absolute(run_dir / "checkpoints").lexically_normal().string();
  });
  ranks.broadcast(checkpoints, 0);
  checkpoint::NewFolder folder(checkpoints, step);
  std::vector<checkpoint::TensorShare> own;
  together(ranks, step, [&] { own = checkpoint::join(entries); });
  share_copies(own, ranks);
  try {
    together(ranks, step, [&] {
      if (leads) folder.start();
    });
    together(ranks, step, [&] {
      KOZERO_REQUIRE(
          fs::is_directory(folder.partial()),
          "the folder '{}' that rank 0 made is not there (not one file system?); set run.dir to a folder that "
          "all ranks share",
          folder.partial().string());
      fs::path const file = folder.partial() / checkpoint::rank_file_name(ranks.rank());
      checkpoint::write_rank_file(file, {ranks.rank(), ranks.size(), step}, own);
      checkpoint::sync_to_disk(file);
      if (leads) {
        CheckpointInfo complete = info;
        complete.ranks = ranks.size();
        complete.generation = checkpoint::next_generation(checkpoints);
        checkpoint::write_info(folder.partial() / checkpoint::info_name, complete);
        checkpoint::sync_to_disk(folder.partial() / checkpoint::info_name);
      }
    });
    together(ranks, step, [&] {
      if (leads) folder.publish(keep);
    });
  } catch (Error const&) {
    if (leads) folder.discard();
    throw;
  }
  return folder.complete();
}

} // namespace kozero
