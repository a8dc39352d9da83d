#include "io/checkpoint_list.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_order.hpp"
#include "io/checkpoint_retention.hpp"
#include "io/json.hpp"
#include "io/plain_file.hpp"

#include <algorithm>
#include <string_view>

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

/// metrics.jsonl and what was kept of other lineages; none where they cannot be read.
std::vector<std::string> metrics_texts(fs::path const& run_dir) {
  std::vector<std::string> texts;
  std::string const path = (run_dir / "metrics.jsonl").string();
  auto paths = kept_metrics_files(path);
  paths.insert(paths.begin(), path);
  for (auto const& file : paths) {
    try {
      if (auto text = read_plain_file(file)) texts.push_back(std::move(*text));
    } catch (Error const&) { // losses are not shown then
    }
  }
  return texts;
}

/// What the line says, if it is an object and has that number.
std::optional<double> number_in(std::string_view line, char const* key) {
  auto const object = Json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains(key) || !object.at(key).is_number()) return {};
  return object.at(key).get<double>();
}

/// Not of the state after a delayed update, say.
bool is_of(Counters const& counters, std::string_view line) {
  auto const object = Json::parse(line, nullptr, false);
  return object.is_object() && object.value("batch", Json()) == Json(counters.batches_seen) &&
         object.value("updates_applied", Json()) == Json(counters.updates_applied);
}

/// Losses from the metrics that the checkpoint was saved with: they are those of its own lineage.
void add_losses(ListedCheckpoint& listed, std::vector<std::string> const& texts) {
  listed.held_out_loss = listed.info->held_out_loss;
  auto const& mark = listed.info->metrics;
  if (!mark) return;
  for (std::string_view const text : texts) {
    auto const size = static_cast<std::size_t>(mark->bytes);
    if (text.size() < size) continue;
    Hash128 hash;
    hash.update(text.data(), size);
    if (hash.hex() != mark->hash) continue;
    std::string_view before = text.substr(0, size);
    while (!before.empty() && !listed.loss) {
      before.remove_suffix(1); // the end of the last line
      auto const begin = before.rfind('\n') + 1;
      listed.loss = number_in(before.substr(begin), "loss");
      before = before.substr(0, begin);
    }
    // An evaluation that was due is made right after the save.
    std::string_view const next = text.substr(size, text.find('\n', size) - size);
    if (!listed.held_out_loss && is_of(listed.info->counters, next)) listed.held_out_loss = number_in(next, "val_loss");
    return;
  }
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
  auto const texts = metrics_texts(run_dir);
  std::vector<ListedCheckpoint> all;
  for (std::int64_t const step : checkpoint::list_steps(checkpoints)) {
    ListedCheckpoint& listed = all.emplace_back(look_at(checkpoint::step_path(checkpoints, step)));
    listed.is_newest = !saved.empty() && saved.back().step == step;
    if (listed.info) add_losses(listed, texts);
  }
  return all;
}

namespace {

/// By the losses of the list, so that the best is what a user has seen. One that cannot be read stays.
std::vector<fs::path> outdated_of(fs::path const& run_dir, Retention const& retention) {
  fs::path const checkpoints = run_dir / "checkpoints";
  auto const listed = list_checkpoints(run_dir);
  std::vector<checkpoint::Candidate> candidates;
  for (auto const& saved : checkpoint::in_order_of_saving(checkpoints)) {
    auto const found =
        std::ranges::find(listed, checkpoint::step_path(checkpoints, saved.step), &ListedCheckpoint::folder);
    if (found == listed.end()) continue;
    if (found->info) {
      candidates.push_back({saved.step, found->held_out_loss});
    } else {
      log::warn("'{}' stays ({})", found->folder.string(), found->problem);
    }
  }
  std::vector<fs::path> outdated;
  for (std::int64_t const step : checkpoint::outdated(candidates, retention)) {
    outdated.push_back(checkpoint::step_path(checkpoints, step));
  }
  std::ranges::sort(outdated);
  return outdated;
}

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
    auto const outdated = outdated_of(run_dir, retention);
    auto const partial = checkpoint::list_partial(checkpoints);
    if (mode == Prune::dry_run) {
      auto const would_be = [](fs::path const&) { return true; };
      pruned.checkpoints = removed(outdated, pruned, would_be);
      pruned.partial = removed(partial, pruned, would_be);
      return pruned;
    }
    lead_to_newest(checkpoints, pruned);
    pruned.checkpoints = removed(outdated, pruned, checkpoint::remove_complete);
    pruned.partial = removed(partial, pruned, checkpoint::remove_own);
  } catch (fs::filesystem_error const& error) {
    throw Error(reason_of(error));
  }
  return pruned;
}

} // namespace kozero
