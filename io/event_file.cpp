#include "io/event_file.hpp"

#include "comm/survey.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "io/json.hpp"
#include "io/plain_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>

namespace kozero {

namespace {

constexpr std::string_view name_begins = "events.out.tfevents."; // what TensorBoard looks for
constexpr std::string_view name_ends = ".kozero";
constexpr std::int64_t most_seconds = 1'000'000'000'000; // of a name that a clock gave

// ---- protocol buffers: a key of (number << 3 | wire type), then the value

template <class Word>
std::string little_endian(Word word) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Word); ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string field(int number, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(static_cast<std::uint64_t>(value));
}
std::string field(int number, double value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string field(int number, float value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string field(int number, std::string const& bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}

// ---- messages of event.proto and summary.proto

/// Of an Event all but its time.
std::string content(std::int64_t step, std::string const& what) { return field(2, step) + what; }
std::string file_version() { return field(3, std::string("brain.Event:2")); }
std::string session_start() { return field(7, field(1, std::int64_t{1})); }

struct Scalar {
  char const* tag;
  double value;
};
std::string scalars(std::initializer_list<Scalar> const& values) {
  std::string summary;
  for (auto const& [tag, value] : values) {
    summary += field(1, field(1, std::string(tag)) + field(2, static_cast<float>(value)));
  }
  return field(5, summary);
}

std::string content(UpdateRecord const& record) {
  return content(
      record.batch,
      scalars(
          {{"loss", record.loss}, {"norm", record.norm}, {"lr", record.lr}, {"tokens_per_s", record.tokens_per_s}}));
}
std::string content(EvaluationRecord const& record) {
  return content(record.batch, scalars({{"loss/held-out", record.val_loss}}));
}

// ---- records

std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

/// Of an event of now.
std::string record(std::string const& content) {
  std::chrono::duration<double> const now = std::chrono::system_clock::now().time_since_epoch();
  std::string const event = field(1, now.count()) + content;
  std::string const length = little_endian(std::uint64_t{event.size()});
  return length + little_endian(masked_crc(length)) + event + little_endian(masked_crc(event));
}

// ---- metrics.jsonl

/// NaN for null, as which metrics.jsonl has what is not finite.
double number(Json const& object, char const* key) {
  auto const found = object.find(key);
  bool const is_number = found != object.end() && found->is_number();
  return is_number ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

/// What was written of a line; empty for one that has no scalars.
std::string content_of_line(std::string_view line) {
  Json const object = Json::parse(line, nullptr, false);
  bool const counts = object.is_object() && object.contains("batch") && object.at("batch").is_number_integer();
  if (!counts) return {};
  auto const batch = object.at("batch").get<std::int64_t>();
  if (object.contains("val_loss")) {
    return content(EvaluationRecord{.batch = batch, .val_loss = number(object, "val_loss")});
  }
  if (!object.contains("loss")) return {};
  return content(UpdateRecord{.batch = batch,
                              .loss = number(object, "loss"),
                              .norm = number(object, "norm"),
                              .lr = number(object, "lr"),
                              .tokens_per_s = number(object, "tokens_per_s")});
}

/// Of the last line that has scalars.
std::string last_content(std::string_view metrics) {
  std::string content;
  while (content.empty() && !metrics.empty()) {
    metrics.remove_suffix(metrics.ends_with('\n') ? 1 : 0);
    auto const begin = metrics.rfind('\n') + 1; // 0 where there is one line alone
    content = content_of_line(metrics.substr(begin));
    metrics = metrics.substr(0, begin);
  }
  return content;
}

std::string records_of(std::string const& metrics) {
  std::string records;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    if (auto const content = content_of_line(line); !content.empty()) records += record(content);
  }
  return records;
}

// ---- files

/// Seconds in the name of the newest file there, whoever wrote it.
std::int64_t newest_time(std::string const& folder) {
  std::int64_t newest = 0;
  std::error_code none;
  for (auto const& item : std::filesystem::directory_iterator(folder, none)) {
    std::string const name = item.path().filename().string();
    if (!name.starts_with(name_begins)) continue;
    std::int64_t time = 0;
    std::from_chars(name.data() + name_begins.size(), name.data() + name.size(), time);
    if (time < most_seconds) newest = std::max(newest, time);
  }
  return newest;
}

std::string new_name(std::string const& folder) {
  auto const now = std::chrono::system_clock::now().time_since_epoch();
  std::int64_t const seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  // Clocks of hosts differ, and a run may start twice in a second.
  return fmt::format("{}/{}{:010}.{}{}", folder, name_begins, std::max(seconds, newest_time(folder) + 1), host_name(),
                     name_ends);
}

/// Links and folders of such a name are others'.
bool is_plain(std::filesystem::directory_entry const& item) {
  std::error_code gone;
  return std::filesystem::is_regular_file(item.symlink_status(gone));
}

/// Whether the newest file has what was last. Then those before it have the rest, or it began with all of it.
bool is_written(std::string const& metrics, std::string const& folder) {
  auto const files = event_files(folder);
  auto const last = last_content(metrics);
  if (files.empty() || last.empty()) return false;
  return read_plain_file(files.back()).value_or("").find(last) != std::string::npos;
}

} // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static auto const table = [] {
    std::array<std::uint32_t, 256> words{};
    for (std::uint32_t i = 0; i < words.size(); ++i) {
      words[i] = i;
      for (int bit = 0; bit < 8; ++bit) words[i] = words[i] >> 1 ^ (words[i] & 1 ? 0x82f63b78u : 0);
    }
    return words;
  }();
  std::uint32_t crc = ~0u;
  for (unsigned char const byte : bytes) crc = crc >> 8 ^ table[(crc ^ byte) & 0xff];
  return ~crc;
}

std::vector<std::string> event_files(std::string const& folder) {
  std::vector<std::string> files;
  std::error_code none;
  for (auto const& item : std::filesystem::directory_iterator(folder, none)) {
    std::string const name = item.path().filename().string();
    if (name.starts_with(name_begins) && name.ends_with(name_ends) && is_plain(item))
      files.push_back(item.path().string());
  }
  std::ranges::sort(files);
  return files;
}

EventFile::EventFile(std::string const& folder, std::string const& metrics_file, std::int64_t next_batch) {
  try {
    std::string const metrics = read_plain_file(metrics_file).value_or("");
    bool const goes_on = is_written(metrics, folder);
    path_ = new_name(folder);
    file_ = open_plain_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
    KOZERO_REQUIRE(file_.is_open(), "'{}' cannot be made (its folder is gone); correct run.dir", path_);
    write(record(content(0, file_version())) + record(content(goes_on ? next_batch : 0, session_start())) +
          (goes_on ? "" : records_of(metrics)));
  } catch (std::exception const& error) { // what TensorBoard shows is not what a run is for
    log::warn("{}. TensorBoard sees no more of this run, metrics.jsonl does", error.what());
  }
}

void EventFile::update(UpdateRecord const& update) { write(record(content(update))); }

void EventFile::evaluation(EvaluationRecord const& evaluation) { write(record(content(evaluation))); }

void EventFile::write(std::string const& records) {
  if (!file_.is_open() || write_all(file_, records)) return;
  log::warn("'{}' cannot be written ({}); TensorBoard sees no more of this run, metrics.jsonl does", path_,
            std::strerror(errno));
  file_ = FileDescriptor();
}

} // namespace kozero
