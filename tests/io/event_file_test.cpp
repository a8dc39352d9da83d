// Event files for TensorBoard, read back by a reader of their format (TensorBoard itself reads them in
// tests/tensorboard).
#include "io/event_file.hpp"

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

using namespace kozero;
using namespace kozero::test;

namespace {

/// Reads protocol buffers: one field after the other.
class Message {
public:
  explicit Message(std::string bytes) : bytes_(std::move(bytes)) {
    while (at_ < bytes_.size()) {
      std::uint64_t const key = varint();
      std::string& value = fields_[static_cast<int>(key >> 3)].emplace_back();
      switch (key & 7) {
      case 0: value = take_varint(); break;
      case 1: value = take(8); break;
      case 2: value = take(varint()); break;
      case 5: value = take(4); break;
      default: throw std::runtime_error("no such wire type");
      }
    }
  }
  bool has(int number) const { return fields_.contains(number); }
  std::vector<std::string> const& all(int number) const { return fields_.at(number); }
  std::string const& bytes(int number) const { return fields_.at(number).at(0); }
  std::uint64_t integer(int number) const { return word<std::uint64_t>(bytes(number)); }
  double real(int number) const { return std::bit_cast<double>(word<std::uint64_t>(bytes(number))); }
  float single(int number) const { return std::bit_cast<float>(word<std::uint32_t>(bytes(number))); }

  template <class Word>
  static Word word(std::string const& bytes) {
    Word value = 0;
    for (std::size_t i = 0; i < sizeof(Word); ++i) value |= Word{static_cast<unsigned char>(bytes.at(i))} << (8 * i);
    return value;
  }

private:
  std::string take(std::uint64_t count) {
    if (bytes_.size() - at_ < count) throw std::runtime_error("cut off");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      auto const byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string take_varint() {
    std::uint64_t const value = varint();
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
    return bytes;
  }
  std::string bytes_;
  std::size_t at_ = 0;
  std::map<int, std::vector<std::string>> fields_;
};

/// TensorFlow's mask, undone.
std::uint32_t unmasked(std::uint32_t masked) {
  std::uint32_t const rotated = masked - 0xa282ead8u;
  return rotated >> 17 | rotated << 15;
}

std::vector<Message> events_in(TemporaryFolder const& folder, std::string const& path) {
  std::string const bytes = folder.read(std::filesystem::path(path).filename());
  std::vector<Message> events;
  for (std::size_t at = 0; at < bytes.size();) {
    auto const length = Message::word<std::uint64_t>(bytes.substr(at, 8));
    CHECK(crc32c(bytes.substr(at, 8)) == unmasked(Message::word<std::uint32_t>(bytes.substr(at + 8, 4))));
    std::string const data = bytes.substr(at + 12, length);
    CHECK(crc32c(data) == unmasked(Message::word<std::uint32_t>(bytes.substr(at + 12 + length, 4))));
    events.emplace_back(data);
    at += 16 + length;
  }
  return events;
}

std::map<std::string, float> scalars(Message const& event) {
  std::map<std::string, float> values;
  Message const summary(event.bytes(5));
  for (auto const& bytes : summary.all(1)) {
    Message const value(bytes);
    values[value.bytes(1)] = value.single(2);
  }
  return values;
}

} // namespace

TEST_CASE("the checksum is that of RFC 3720") {
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
  CHECK(crc32c("") == 0);
}

TEST_CASE("a file begins with its version and where the run begins, then has the scalars of each batch") {
  TemporaryFolder const folder;
  EventFile file(folder.path(), folder.file("metrics.jsonl"), 300);
  file.update(
      {.batch = 300, .loss = 2.5, .norm = std::numeric_limits<double>::quiet_NaN(), .lr = 1e-3, .tokens_per_s = 7});
  file.evaluation({.batch = 300, .updates_applied = 299, .val_loss = 3.25});
  REQUIRE(event_files(folder.path()).size() == 1);
  auto const events = events_in(folder, event_files(folder.path())[0]);
  REQUIRE(events.size() == 4);
  CHECK(events[0].bytes(3) == "brain.Event:2");
  CHECK(events[0].real(1) > 1.7e9);
  CHECK(events[1].integer(2) == 0);
  CHECK(Message(events[1].bytes(7)).integer(1) == 1); // SessionLog.START
  CHECK(events[2].integer(2) == 300);
  auto const update = scalars(events[2]);
  CHECK(update.size() == 4);
  CHECK(update.at("loss") == 2.5f);
  CHECK(std::isnan(update.at("norm")));
  CHECK(update.at("lr") == 1e-3f);
  CHECK(update.at("tokens_per_s") == 7);
  CHECK(scalars(events[3]) == std::map<std::string, float>{{"loss/held-out", 3.25f}});
}

TEST_CASE("a later start's file comes behind those that are there") {
  TemporaryFolder const folder;
  folder.write("events.out.tfevents.9000000000.other", "of another host, whose clock is ahead");
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    EventFile const file(folder.path(), folder.file("metrics.jsonl"), 1);
    REQUIRE(event_files(folder.path()).size() == names.size() + 1);
    names.push_back(event_files(folder.path()).back());
    CHECK(names.back() > folder.file("events.out.tfevents.9000000000.other"));
  }
}

TEST_CASE("what metrics.jsonl has and former files lack is written anew, and nothing else") {
  TemporaryFolder const folder;
  std::string lines = "{\"batch\":1,\"loss\":2.0,\"norm\":null,\"lr\":0.5,\"tokens_per_s\":9}\n"
                      "{\"batch\":1,\"updates_applied\":1,\"val_loss\":1.5}\n"
                      "{\"event\":\"note\",\"batch\":1,\"text\":\"x\"}\n{\"event\":\"end\",\"loss\":1}\n"
                      "nonsense\n[1]\n{\"batch\":\"x\",\"loss\":1}\n{\"batch\":2,\"loss\":";
  auto const begin = [&](std::int64_t next_batch) {
    return EventFile(folder.path(), folder.write("metrics.jsonl", lines), next_batch);
  };
  auto const newest = [&] { return events_in(folder, event_files(folder.path()).back()); };
  begin(2);
  auto const events = newest();
  REQUIRE(events.size() == 4);
  CHECK(events[1].integer(2) == 0);
  CHECK(scalars(events[2]).at("loss") == 2);
  CHECK(std::isnan(scalars(events[2]).at("norm")));
  CHECK(scalars(events[3]).at("loss/held-out") == 1.5f);

  UpdateRecord const second{.batch = 2, .loss = 0.1, .norm = 1.0 / 3, .lr = 1e-3, .tokens_per_s = 12345.678};
  auto const goes_on = [&](std::uint64_t next_batch) {
    REQUIRE(newest().size() == 2);
    CHECK(newest()[1].integer(2) == next_batch);
  };
  {
    EventFile file = begin(2);
    goes_on(2);
    file.update(second);
  }
  lines = "{\"batch\":2,\"loss\":0.1,\"norm\":0.3333333333333333,\"lr\":0.001,\"tokens_per_s\":12345.678}\n";
  SECTION("all is there") {
    begin(3);
    goes_on(3);
  }
  SECTION("a batch while there were no events") {
    lines += "{\"batch\":3,\"loss\":0.2,\"norm\":1,\"lr\":0.001,\"tokens_per_s\":1}\n";
    begin(4);
    REQUIRE(newest().size() == 4);
    CHECK(newest()[1].integer(2) == 0);
    CHECK(newest()[2].integer(2) == 2);
    CHECK(newest()[3].integer(2) == 3);
  }
  SECTION("another lineage") {
    lines = "{\"batch\":2,\"loss\":0.5,\"norm\":1,\"lr\":0.001,\"tokens_per_s\":1}\n";
    begin(3);
    REQUIRE(newest().size() == 3);
    CHECK(newest()[1].integer(2) == 0);
    CHECK(scalars(newest()[2]).at("loss") == 0.5f);
  }
  SECTION("files that are lost") {
    for (auto const& file : event_files(folder.path())) std::filesystem::remove(file);
    begin(3);
    CHECK(newest().size() == 3);
  }
}

TEST_CASE("what cannot be read or made ends no run") {
  TemporaryFolder const folder;
  auto const ends_quietly = [](std::string const& in, std::string const& metrics) {
    EventFile events(in, metrics, 1);
    events.update({.batch = 1});
    return event_files(in).empty();
  };
  CHECK(ends_quietly(folder.path(), folder.path())); // metrics.jsonl is a folder
  CHECK(ends_quietly(folder.file("gone"), folder.file("gone/metrics.jsonl")));
  CHECK(ends_quietly(folder.write("file", ""), folder.file("metrics.jsonl")));
}
