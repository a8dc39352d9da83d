#include "io/metrics_lineage.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/json.hpp"
#include "io/plain_file.hpp"

#include <string_view>

namespace kozero {

namespace fs = std::filesystem;

namespace {

/// The line at the front of a text, which loses it; nothing where no whole line is left.
std::optional<std::string_view> next_line(std::string_view& text) {
  auto const end = text.find('\n');
  if (end == std::string_view::npos) return {};
  auto const line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

enum class Line { of_the_past, of_the_future, broken };

/// Where a line stands to a run of which `batches_seen` batches count.
Line classify(Json const& object, std::int64_t batches_seen) {
  if (!object.is_object()) return Line::broken;
  if (object.contains("event")) return Line::of_the_future; // the end of the former run is none any more
  auto const batch = object.find("batch");
  if (batch == object.end() || !batch->is_number_integer()) return Line::broken;
  return batch->get<std::int64_t>() <= batches_seen ? Line::of_the_past : Line::of_the_future;
}

/// Of the state at the point, not of the one before or after a delayed update.
bool is_evaluation(Json const& object, ResumePoint const& point) {
  return object.is_object() && object.contains("val_loss") &&
         object.value("batch", Json()) == Json(point.batches_seen) &&
         object.value("updates_applied", Json()) == Json(point.updates_applied);
}

Json parse(std::string_view line) { return Json::parse(line, nullptr, false); }

bool has(std::string_view text, MetricsMark const& mark) {
  if (mark.bytes < 0 || mark.bytes > std::ssize(text)) return false;
  Hash128 hash;
  hash.update(text.data(), static_cast<std::size_t>(mark.bytes));
  return hash.hex() == mark.hash;
}

/// Up to the mark, and evaluations of the same state behind it.
std::string lines_of_mark(std::string_view text, ResumePoint const& point) {
  auto const bytes = static_cast<std::size_t>(point.mark->bytes);
  std::string kept(text.substr(0, bytes));
  text.remove_prefix(bytes);
  while (auto const line = next_line(text)) {
    if (!is_evaluation(parse(*line), point)) break;
    kept.append(*line) += '\n';
  }
  return kept;
}

std::string lines_of_batches(std::string const& path, std::string_view text, std::int64_t batches_seen) {
  std::string kept;
  for (int number = 1; auto const line = next_line(text); ++number) {
    Line const kind = classify(parse(*line), batches_seen);
    if (kind == Line::of_the_past) kept.append(*line) += '\n';
    if (kind == Line::broken) {
      log::warn("'{}': line {} is dropped (no record of a batch: damaged, or not written by kozero)", path, number);
    }
  }
  return kept;
}

bool ends_with_evaluation(std::string_view text, ResumePoint const& point) {
  if (text.empty()) return false;
  text.remove_suffix(1);
  auto const begin = text.rfind('\n') + 1; // 0 where there is one line alone
  return is_evaluation(parse(text.substr(begin)), point);
}

/// "…/metrics.jsonl" -> "…/metrics.<number>.jsonl"
std::string kept_name(fs::path const& path, int number) {
  return path.parent_path() / fmt::format("{}.{}{}", path.stem().string(), number, path.extension().string());
}

bool is_there(std::string const& path) { return fs::exists(fs::symlink_status(path)); }

} // namespace

ResumePoint resume_point(fs::path const& checkpoint, fs::path const& run_dir) {
  auto const info = CheckpointReader(checkpoint).info();
  auto const steps = checkpoint::list_steps(run_dir / "checkpoints");
  bool const newest = steps.empty() || steps.back() <= info.counters.updates_applied;
  return {.batches_seen = info.counters.batches_seen,
          .updates_applied = info.counters.updates_applied,
          .mark = info.metrics,
          .former = newest ? ResumePoint::Former::replaced : ResumePoint::Former::kept};
}

KeptMetrics metrics_of(std::string const& path, ResumePoint const& point) {
  KeptMetrics kept;
  auto const text = read_plain_file(path);
  auto const take = [&](std::string lines) {
    kept.evaluated = ends_with_evaluation(lines, point);
    kept.text = std::move(lines);
    return kept;
  };
  if (point.mark) {
    if (text && has(*text, *point.mark)) return take(lines_of_mark(*text, point));
    for (auto const& former : kept_metrics_files(path)) {
      auto const other = read_plain_file(former);
      if (!other || !has(*other, *point.mark)) continue;
      kept.from_another_lineage = true;
      log::info("resume: the metrics of this checkpoint are in '{}'; they are taken from there", former);
      return take(lines_of_mark(*other, point));
    }
    kept.from_another_lineage = text.has_value();
    if (text) {
      log::warn(
          "resume: no metrics in the folder are those of this checkpoint ('{}' is another run's, or was changed); "
          "they begin anew",
          path);
    }
    return kept;
  }
  if (!text) return kept;
  log::info("resume: '{}' is cut back to batch {} (the checkpoint does not say which of its lines belong to it)", path,
            point.batches_seen);
  return take(lines_of_batches(path, *text, point.batches_seen));
}

std::vector<std::string> kept_metrics_files(std::string const& path) {
  std::vector<std::string> files;
  for (int number = 1; is_there(kept_name(path, number)); ++number) files.push_back(kept_name(path, number));
  return files;
}

void keep_metrics_file(std::string const& path) {
  if (!is_there(path)) return;
  std::string const kept = kept_name(path, static_cast<int>(kept_metrics_files(path).size()) + 1);
  std::error_code error;
  fs::rename(path, kept, error);
  KOZERO_REQUIRE(!error, "'{}' cannot be kept as '{}' ({}); correct run.dir or its permissions", path, kept,
                 error.message());
  log::info("resume: '{}' is kept as '{}' (for checkpoints of later updates)", path, kept);
}

} // namespace kozero
