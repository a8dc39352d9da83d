#include "io/checkpoint_list.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_order.hpp"
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
    if (!listed.held_out_loss) listed.held_out_loss = number_in(next, "val_loss");
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

Pruned outdated_of(fs::path const& run_dir, Retention const& retention) {
  fs::path const checkpoints = run_dir / "checkpoints";
  Pruned pruned;
  std::vector<std::int64_t> steps;
  for (auto const& saved : checkpoint::in_order_of_saving(checkpoints)) steps.push_back(saved.step);
  for (std::int64_t const step : checkpoint::outdated(checkpoints, steps, retention)) {
    pruned.checkpoints.push_back(checkpoint::step_path(checkpoints, step));
  }
  std::ranges::sort(pruned.checkpoints);
  pruned.partial = checkpoint::list_partial(checkpoints);
  for (auto const& folder : pruned.checkpoints) pruned.bytes += bytes_in(folder);
  for (auto const& folder : pruned.partial) pruned.bytes += bytes_in(folder);
  return pruned;
}

} // namespace

Pruned prune_checkpoints(fs::path const& run_dir, Retention const& retention, Prune mode) {
  try {
    Pruned pruned = outdated_of(run_dir, retention);
    if (mode == Prune::dry_run) return pruned;
    for (auto const& folder : pruned.checkpoints) checkpoint::remove_complete(folder);
    for (auto const& folder : pruned.partial) checkpoint::remove_own(folder);
    return pruned;
  } catch (fs::filesystem_error const& error) {
    throw Error(fmt::format("cannot remove '{}' ({}); see who may write there", error.path1().string(),
                            error.code().message()));
  }
}

} // namespace kozero
