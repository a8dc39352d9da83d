#include "io/metrics.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "io/json.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
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
      fmt::format("metrics file '{}' cannot be {} ({}); free space or correct run.dir, then resume from the last "
                  "checkpoint",
                  path, what, std::strerror(errno)));
}

enum class Line { of_the_past, of_the_future, broken };

/// Where a line stands to a run of which `batches_seen` batches count.
Line classify(std::string const& text, std::int64_t batches_seen) {
  Json const object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return Line::broken;
  if (object.contains("event")) return Line::of_the_future; // the end of the former run is none any more
  auto const batch = object.find("batch");
  if (batch == object.end() || !batch->is_number_integer()) return Line::broken;
  return batch->get<std::int64_t>() <= batches_seen ? Line::of_the_past : Line::of_the_future;
}

bool is_evaluation_after(std::string const& text, std::int64_t batches_seen) {
  Json const object = Json::parse(text);
  return object.contains("val_loss") && object.at("batch") == batches_seen;
}

/// The lines of a metrics file that a resumed run keeps.
struct Kept {
  std::string lines;
  bool ends_evaluated = false;
};

Kept lines_to_keep(std::string const& path, std::int64_t batches_seen) {
  Kept kept;
  if (!std::filesystem::exists(path)) return kept;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("read", path);
  std::string text;
  for (std::int64_t number = 1; std::getline(in, text); ++number) {
    bool const torn = in.eof(); // no end of line: it was being written when the run was killed
    Line const kind = torn ? Line::broken : classify(text, batches_seen);
    if (kind == Line::of_the_past) {
      kept.lines += text + '\n';
      kept.ends_evaluated = is_evaluation_after(text, batches_seen);
    }
    if (kind == Line::broken && !torn) {
      log::warn("'{}': line {} is dropped (no record of a batch: damaged, or not written by kozero)", path, number);
    }
  }
  if (in.bad()) fail("read", path);
  return kept;
}

} // namespace

MetricsFile MetricsFile::open(std::string path, int flags) {
  int const file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
  if (file < 0) fail("opened", path);
  return {std::move(path), file};
}

MetricsFile MetricsFile::create(std::string path) { return open(std::move(path), O_TRUNC); }

MetricsFile MetricsFile::resume(std::string path, std::int64_t batches_seen) {
  Kept const kept = lines_to_keep(path, batches_seen);
  MetricsFile fresh = open(path + ".partial", O_TRUNC);
  fresh.write(kept.lines);
  fresh.ends_evaluated_ = kept.ends_evaluated;
  // On disk before it takes the other's place, or a power cut could leave neither.
  if (::fsync(fresh.file_) != 0) fail("written", fresh.path_);
  if (std::rename(fresh.path_.c_str(), path.c_str()) != 0) fail("replaced", path);
  fresh.path_ = std::move(path);
  return fresh;
}

MetricsFile::MetricsFile(MetricsFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), ends_evaluated_(other.ends_evaluated_) {}

MetricsFile::~MetricsFile() {
  if (file_ >= 0) ::close(file_);
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
  char const* next = text.data();
  for (std::size_t left = text.size(); left > 0;) {
    ssize_t const written = ::write(file_, next, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("written", path_);
    next += written;
    left -= static_cast<std::size_t>(written);
  }
}

} // namespace kozero
