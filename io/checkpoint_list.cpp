#include "io/checkpoint_list.hpp"

#include "core/error.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_losses.hpp"
#include "io/checkpoint_order.hpp"
#include "io/checkpoint_retention.hpp"

#include <algorithm>

namespace kozero {

namespace fs = std::filesystem;

namespace {

std::int64_t bytes_in(fs::path const& folder) {
  std::int64_t bytes = 0;
  std::error_code ignored;
  for (auto const& item : fs::directory_iterator(folder, ignored)) {
    if (item.is_regular_file(ignored)) bytes += static_cast<std::int64_t>(item.file_size(ignored));
  }
  return bytes;
}

ListedCheckpoint look_at(fs::path const& folder) {
  ListedCheckpoint listed{.folder = folder};
  std::error_code ignored;
  listed.bytes = bytes_in(folder);
  auto const written = fs::last_write_time(folder / checkpoint::info_name, ignored);
  listed.saved =
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(std::chrono::file_clock::to_sys(written));
  try {
    listed.info = checkpoint::read_info(folder / checkpoint::info_name);
  } catch (Error const& error) {
    listed.problem = error.what();
  }
  return listed;
}

} // namespace

std::vector<ListedCheckpoint> list_checkpoints(fs::path const& run_dir) {
  fs::path const checkpoints = run_dir / "checkpoints";
  auto const saved = checkpoint::in_order_of_saving(checkpoints);
  checkpoint::CheckpointLosses losses(run_dir);
  std::vector<ListedCheckpoint> all;
  for (std::int64_t const step : checkpoint::list_steps(checkpoints)) {
    ListedCheckpoint& listed = all.emplace_back(look_at(checkpoint::step_path(checkpoints, step)));
    listed.is_newest = !saved.empty() && saved.back().step == step;
    if (!listed.info) continue;
    listed.loss = losses.training(*listed.info);
    listed.held_out_loss = losses.held_out(*listed.info);
  }
  return all;
}

namespace {

std::string reason_of(fs::filesystem_error const& error) {
  return fmt::format("cannot remove '{}' ({}); see who may write there", error.path1().string(),
                     error.code().message());
}

/// Does not stop at one that cannot be removed. Those that are gone.
template <class Remove>
std::vector<fs::path> removed(std::vector<fs::path> const& folders, Pruned& pruned, Remove const& remove) {
  std::vector<fs::path> gone;
  for (auto const& folder : folders) {
    std::int64_t const bytes = bytes_in(folder);
    try {
      if (remove(folder)) {
        gone.push_back(folder);
        pruned.bytes += bytes;
      } else {
        pruned.problems.push_back(
            fmt::format("'{}' stays, with files that kozero did not write; remove it by hand", folder.string()));
      }
    } catch (fs::filesystem_error const& error) {
      pruned.problems.push_back(reason_of(error));
    }
  }
  return gone;
}

/// It may lead to what is to go, where a save was cut short or it was moved by hand.
void lead_to_newest(fs::path const& checkpoints, Pruned& pruned) {
  auto const saved = checkpoint::in_order_of_saving(checkpoints);
  if (saved.empty() || saved.back().is_linked) return;
  try {
    checkpoint::move_latest(checkpoint::step_path(checkpoints, saved.back().step));
  } catch (fs::filesystem_error const& error) {
    pruned.problems.push_back(fmt::format("the link 'latest' in '{}' cannot be moved to the newest checkpoint ({})",
                                          checkpoints.string(), error.code().message()));
  }
}

} // namespace

Pruned prune_checkpoints(fs::path const& run_dir, Retention const& retention, Prune mode) {
  Pruned pruned;
  try {
    fs::path const checkpoints = run_dir / "checkpoints";
    std::vector<fs::path> outdated;
    for (std::int64_t const step : checkpoint::outdated_in(checkpoints, retention)) {
      outdated.push_back(checkpoint::step_path(checkpoints, step));
    }
    std::ranges::sort(outdated);
    auto const partial = checkpoint::list_partial(checkpoints);
    if (mode == Prune::dry_run) {
      auto const would_be = [](fs::path const&) { return true; };
      pruned.checkpoints = removed(outdated, pruned, would_be);
      pruned.partial = removed(partial, pruned, would_be);
      return pruned;
    }
    lead_to_newest(checkpoints, pruned);
    pruned.partial = removed(partial, pruned, [](fs::path const& folder) { return checkpoint::remove_own(folder); });
    pruned.checkpoints = removed(outdated, pruned, checkpoint::remove_complete);
  } catch (fs::filesystem_error const& error) {
    throw Error(reason_of(error));
  }
  return pruned;
}

} // namespace kozero
