#include "io/metrics.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "io/json.hpp"
#include "io/plain_file.hpp"
#include "io/system_error.hpp"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

namespace kozero {

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string line(Json const& object) {
  // A text that is not UTF-8 does not end the run.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

constexpr std::size_t most_waiting = 10'000; // lines, 2 MB

} // namespace

MetricsFile::MetricsFile(std::string path, std::string const& text)
    : path_(std::move(path)), file_(replace_file(path_, text)), written_(std::ssize(text)) {
  count(text);
}

MetricsFile MetricsFile::create(std::string path) { return {std::move(path), ""}; }

MetricsFile MetricsFile::resume(std::string path, ResumePoint const& point) {
  KeptMetrics const kept = metrics_of(path, point);
  if (kept.from_another_lineage || point.former == ResumePoint::Former::kept) keep_metrics_file(path);
  MetricsFile file(std::move(path), kept.text);
  file.ends_evaluated_ = kept.evaluated;
  return file;
}

MetricsMark MetricsFile::mark() {
  put_waiting();
  ::fsync(file_.get()); // where it fails and the lines are lost, the mark fits none
  return {bytes_, hash_.hex()};
}

MetricsFile::Found MetricsFile::keep_at(std::string const& path) {
  if (is_at(file_, path)) {
    path_ = path;
    return Found::in_place;
  }
  try {
    write_anew(path);
    return Found::written_anew;
  } catch (Error const& error) { // the next look tries again
    if (!std::exchange(is_without_place_, true)) log::warn("{}; the run goes on without", error.what());
    return Found::in_place;
  }
}

void MetricsFile::write_anew(std::string const& path) {
  keep_metrics_file(path);
  std::string text = read_all(file_); // a file that was removed lives on while it is open, but for that of another host
  text.resize(text.rfind('\n') + 1);
  for (auto const& line : waiting_) text += line;
  file_ = replace_file(path, text);
  path_ = path;
  waiting_.clear();
  hash_ = {};
  bytes_ = 0;
  count(text);
  written_ = bytes_;
  is_failing_ = is_without_place_ = false;
}

void MetricsFile::update(UpdateRecord const& record) {
  Json object{{"batch", record.batch},
              {"updates_applied", record.updates_applied},
              {"updates_skipped", record.updates_skipped},
              {"loss", number(record.loss)},
              {"norm", number(record.norm)},
              {"clip", number(record.clip)},
              {"lr", number(record.lr)},
              {"tokens_per_s", number(record.tokens_per_s)},
              {"seconds", number(record.seconds)}};
  if (record.loss_scale) object["loss_scale"] = number(*record.loss_scale);
  if (record.pending) object["pending"] = true;
  write(line(object));
}

void MetricsFile::evaluation(EvaluationRecord const& record) {
  write(line(
      {{"batch", record.batch}, {"updates_applied", record.updates_applied}, {"val_loss", number(record.val_loss)}}));
}

void MetricsFile::end(EndRecord const& record) {
  Json object{{"event", "end"},
              {"updates_applied", record.updates_applied},
              {"updates_skipped", record.updates_skipped},
              {"batches_seen", record.batches_seen}};
  if (record.loss) object["loss"] = number(*record.loss);
  if (record.val_loss) object["val_loss"] = number(*record.val_loss);
  object["state_hash"] = record.state_hash;
  object["seconds"] = number(record.seconds);
  object["reason"] = record.reason;
  write(line(object));
  if (waiting_.empty()) return;
  log::warn("'{}' lacks its last {} lines, this run's end among them (they could not be written)", path_,
            waiting_.size());
}

void MetricsFile::note(std::int64_t batch, std::string const& text) {
  write(line({{"event", "note"}, {"batch", batch}, {"text", text}}));
}

void MetricsFile::write(std::string line) {
  put_waiting();
  if (waiting_.size() == most_waiting) {
    ++lost_;
    return;
  }
  count(line);
  waiting_.push_back(std::move(line));
  put_waiting();
}

void MetricsFile::put_waiting() {
  for (; !waiting_.empty(); waiting_.pop_front()) {
    if (!put(waiting_.front())) return;
  }
  if (std::exchange(is_failing_, false)) tell_of_end_of_failure();
}

/// All of the line or, as soon as the disk lets that be, nothing.
bool MetricsFile::put(std::string const& line) {
  bool const is_whole = !is_failing_ || ::ftruncate(file_.get(), written_) == 0;
  if (is_whole && write_all(file_, line)) {
    written_ += std::ssize(line);
    return true;
  }
  int const cause = errno;
  static_cast<void>(::ftruncate(file_.get(), written_)); // tried again before the next line
  if (!std::exchange(is_failing_, true)) {
    log::warn("'{}' cannot be written ({}); the run goes on, and its lines wait in memory, {} at most; {}", path_,
              std::strerror(cause), most_waiting, remedy(cause, "look at its disk"));
  }
  return false;
}

void MetricsFile::tell_of_end_of_failure() {
  if (lost_ == 0) {
    log::info("'{}' is written again; none of its lines is lost", path_);
  } else {
    log::warn("'{}' is written again; {} of its lines are lost", path_, std::exchange(lost_, 0));
  }
}

void MetricsFile::count(std::string const& text) {
  hash_.update(text.data(), text.size());
  bytes_ += std::ssize(text);
}

} // namespace kozero
