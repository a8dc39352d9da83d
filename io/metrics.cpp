#include "io/metrics.hpp"

#include "core/error.hpp"
#include "io/json.hpp"
#include "io/plain_file.hpp"
#include "io/system_error.hpp"

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

[[noreturn]] void fail(char const* what, std::string const& path) {
  throw Error(
      fmt::format("metrics file '{}' cannot be {} ({}); {}, then resume from the last checkpoint if there is one", path,
                  what, std::strerror(errno), remedy(errno, "free space or correct run.dir")));
}

} // namespace

MetricsFile::MetricsFile(std::string path, std::string const& text)
    : path_(std::move(path)), file_(replace_file(path_, text)) {
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

MetricsMark MetricsFile::mark() const {
  ::fsync(file_.get()); // where it fails and the lines are lost, the mark fits none
  return {bytes_, hash_.hex()};
}

MetricsFile::Found MetricsFile::keep_at(std::string const& path) {
  if (is_at(file_, path)) {
    path_ = path;
    return Found::in_place;
  }
  keep_metrics_file(path);
  std::string text = read_all(file_); // a file that was removed lives on while it is open, but for that of another host
  text.resize(text.rfind('\n') + 1);
  *this = MetricsFile(path, text);
  return Found::written_anew;
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
}

void MetricsFile::note(std::int64_t batch, std::string const& text) {
  write(line({{"event", "note"}, {"batch", batch}, {"text", text}}));
}

void MetricsFile::write(std::string const& text) {
  if (!write_all(file_, text)) fail("written", path_);
  count(text);
}

void MetricsFile::count(std::string const& text) {
  hash_.update(text.data(), text.size());
  bytes_ += std::ssize(text);
}

} // namespace kozero
