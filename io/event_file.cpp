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

std::string event(std::int64_t step, std::string const& what) {
  std::chrono::duration<double> const now = std::chrono::system_clock::now().time_since_epoch();
  return field(1, now.count()) + field(2, step) + what;
}
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

// ---- records

std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

std::string record(std::string const& bytes) {
  std::string const length = little_endian(std::uint64_t{bytes.size()});
  return length + little_endian(masked_crc(length)) + bytes + little_endian(masked_crc(bytes));
}

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

/// NaN for null, as which metrics.jsonl has what is not finite.
double number(Json const& object, char const* key) {
  auto const found = object.find(key);
  bool const is_number = found != object.end() && found->is_number();
  return is_number ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
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

EventFile::EventFile(std::string const& folder, std::int64_t first_batch) : path_(new_name(folder)) {
  try {
    file_ = open_plain_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
  } catch (Error const& error) {
    log::warn("{}. TensorBoard sees nothing of this run, metrics.jsonl does", error.what());
  }
  write(event(0, file_version()));
  write(event(first_batch, session_start()));
}

void EventFile::update(UpdateRecord const& record) {
  write(event(
      record.batch,
      scalars(
          {{"loss", record.loss}, {"norm", record.norm}, {"lr", record.lr}, {"tokens_per_s", record.tokens_per_s}})));
}

void EventFile::evaluation(EvaluationRecord const& record) {
  write(event(record.batch, scalars({{"loss/held-out", record.val_loss}})));
}

void EventFile::all_of(std::string const& metrics_file) {
  std::istringstream lines(read_plain_file(metrics_file).value_or(""));
  for (std::string line; std::getline(lines, line);) write_line(line);
}

void EventFile::write_line(std::string const& line) {
  Json const object = Json::parse(line, nullptr, false);
  bool const counts = object.is_object() && object.contains("batch") && object.at("batch").is_number_integer();
  if (!counts) return;
  auto const batch = object.at("batch").get<std::int64_t>();
  if (object.contains("val_loss")) evaluation({.batch = batch, .val_loss = number(object, "val_loss")});
  if (!object.contains("loss")) return;
  update({.batch = batch,
          .loss = number(object, "loss"),
          .norm = number(object, "norm"),
          .lr = number(object, "lr"),
          .tokens_per_s = number(object, "tokens_per_s")});
}

void EventFile::write(std::string const& event) {
  if (!file_.is_open() || write_all(file_, record(event))) return;
  log::warn("'{}' cannot be written ({}); TensorBoard sees no more of this run, metrics.jsonl does", path_,
            std::strerror(errno));
  file_ = FileDescriptor();
}

} // namespace kozero
