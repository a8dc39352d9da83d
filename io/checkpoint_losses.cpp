#include "io/checkpoint_losses.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "io/json.hpp"
#include "io/plain_file.hpp"

#include <string_view>

namespace kozero::checkpoint {

namespace fs = std::filesystem;

namespace {

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

} // namespace

/// The text of the file that begins as the checkpoint has seen it.
std::optional<std::string_view> CheckpointLosses::metrics_of(CheckpointInfo const& info) {
  if (!info.metrics) return {};
  if (!texts_) texts_ = metrics_texts(run_dir_);
  auto const size = static_cast<std::size_t>(info.metrics->bytes);
  for (std::string_view const text : *texts_) {
    if (text.size() < size) continue;
    Hash128 hash;
    hash.update(text.data(), size);
    if (hash.hex() == info.metrics->hash) return text;
  }
  return {};
}

std::optional<double> CheckpointLosses::training(CheckpointInfo const& info) {
  auto const text = metrics_of(info);
  if (!text) return {};
  std::string_view before = text->substr(0, static_cast<std::size_t>(info.metrics->bytes));
  while (!before.empty()) {
    before.remove_suffix(1); // the end of the last line
    auto const begin = before.rfind('\n') + 1;
    if (auto const loss = number_in(before.substr(begin), "loss")) return loss;
    before = before.substr(0, begin);
  }
  return {};
}

std::optional<double> CheckpointLosses::held_out(CheckpointInfo const& info) {
  if (info.held_out_loss) return info.held_out_loss;
  auto const text = metrics_of(info);
  if (!text) return {};
  // An evaluation that was due is made right after the save.
  auto const size = static_cast<std::size_t>(info.metrics->bytes);
  std::string_view const next = text->substr(size, text->find('\n', size) - size);
  return is_of(info.counters, next) ? number_in(next, "val_loss") : std::nullopt;
}

} // namespace kozero::checkpoint
