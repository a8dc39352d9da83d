#include "io/token_file.hpp"

#include "core/error.hpp"
#include "core/heartbeat.hpp"
#include "io/token_doubts.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace kozero {

namespace {

template <int width>
std::uint32_t decode(std::byte const* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < width; ++i) value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

/// Returns the largest id.
template <int width>
std::uint32_t decode_all(std::byte const* bytes, std::span<std::int32_t> out) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t const id = decode<width>(bytes + i * width);
    largest = std::max(largest, id);
    out[i] = static_cast<std::int32_t>(id);
  }
  return largest;
}

constexpr std::int64_t ids_of_16_bits = 65536;
constexpr std::int64_t most_at_once = 4096; // tokens of one read

// llm.c: dev/data/data_common.py (HEADERS_INFO, write_datafile) and llmc/dataloader.h.
constexpr std::int64_t llmc_header_bytes = 1024; // 256 words of 4
constexpr std::uint32_t llmc_evaluation_magic = 20240522;
struct LlmcKind {
  std::uint32_t magic;
  std::uint32_t version;
  std::int64_t width;
  char const* name;
};
constexpr std::array<LlmcKind, 2> llmc_kinds = {{
    {20240520, 1, 2, "uint16"},
    {20240801, 7, 4, "uint32"},
}};

std::optional<LlmcKind> llmc_kind(std::uint32_t magic) {
  for (LlmcKind const& kind : llmc_kinds) {
    if (kind.magic == magic) return kind;
  }
  return std::nullopt;
}

/// The integer that a llm.c file would have there; 0, which is no magic number, past the end.
std::uint32_t header_word(DataFile const& file, std::int64_t index) {
  if (file.size() < 4 * (index + 1)) return 0;
  std::array<std::byte, 4> bytes;
  file.read(4 * index, bytes);
  return decode<4>(bytes.data());
}

std::optional<ForeignFormat> format_it_begins_as(DataFile const& file) {
  std::array<std::byte, foreign_head_bytes> bytes;
  auto const head = std::span(bytes).first(static_cast<std::size_t>(std::min(file.size(), std::ssize(bytes))));
  file.read(0, head);
  return foreign_format(head);
}

} // namespace

TokenFile::TokenFile(std::string path, DataFormat format, std::int64_t vocabulary)
    : file_(std::move(path)), foreign_(format_it_begins_as(file_)), vocabulary_(vocabulary) {
  interpret(format);
  fingerprint_ = fingerprint_of(file_, count_);
  if (file_.size() <= checked_at_start_bytes) {
    file_.expect(DataFile::Access::whole);
    check_all();
  }
  file_.expect(DataFile::Access::random); // windows are read in shuffled order
}

void TokenFile::interpret(DataFormat format) {
  std::uint32_t const magic = header_word(file_, 0);
  bool const is_llmc = llmc_kind(magic) || magic == llmc_evaluation_magic;
  bool const may_be_ids = format != DataFormat::automatic && format != DataFormat::llmc;
  if (foreign_ && !may_be_ids) {
    throw InputError(fmt::format("'{}' is {} (text or token ids are needed); {}, or set data.format to what it is",
                                 path(), foreign_->name, foreign_->advice));
  }
  switch (format) {
  case DataFormat::llmc: return interpret_llmc("data.format");
  case DataFormat::automatic:
    if (is_llmc) return interpret_llmc("automatic: the file starts with llm.c's magic number");
    if (!path().ends_with(".bin")) {
      return interpret_raw(DataFormat::text, "automatic: no llm.c header, and the name does not end in .bin");
    }
    if (vocabulary_ > ids_of_16_bits) {
      return interpret_raw(DataFormat::uint32, "automatic: the name ends in .bin, and the vocabulary is above 65536");
    }
    return interpret_raw(DataFormat::uint16, "automatic: the name ends in .bin");
  case DataFormat::text:
  case DataFormat::uint16:
  case DataFormat::uint32:
    if (is_llmc && format != DataFormat::text) foreign_ = {"a file of llm.c", "set data.format to llmc or auto"};
    if (format == DataFormat::uint16 && vocabulary_ > ids_of_16_bits) {
      throw InputError(
          fmt::format("'{}' cannot have ids of 16 bits (data.format is uint16, and model.vocabulary is {}); "
                      "set data.format: uint32, or model.vocabulary to at most 65536",
                      path(), vocabulary_));
    }
    return interpret_raw(format, "data.format");
  }
}

void TokenFile::interpret_raw(DataFormat format, std::string const& reason) {
  std::int64_t const file_bytes = file_.size();
  width_ = format == DataFormat::text ? 1 : format == DataFormat::uint16 ? 2 : 4;
  count_ = file_bytes / width_;
  description_ = width_ == 1 ? fmt::format("text, a token a byte ({})", reason)
                             : fmt::format("uint{} token ids ({})", 8 * width_, reason);
  if (file_bytes % width_ != 0) {
    throw InputError(fmt::format("'{}' has {} bytes, of which the last {} at offset {} make no whole token of {} bytes "
                                 "(read as {}; cut off, or of another format); correct the file or data.format",
                                 path(), file_bytes, file_bytes % width_, count_ * width_, width_, description_));
  }
}

void TokenFile::interpret_llmc(std::string const& reason) {
  std::int64_t const file_bytes = file_.size();
  auto const refuse = [&](std::string const& what) {
    throw InputError(fmt::format("'{}' is no llm.c token file: {}; correct the file or data.format", path(), what));
  };
  if (file_bytes < llmc_header_bytes) {
    refuse(fmt::format("it has {} bytes (the header alone has {})", file_bytes, llmc_header_bytes));
  }
  std::uint32_t const magic = header_word(file_, 0);
  std::optional<LlmcKind> const kind = llmc_kind(magic);
  if (!kind) {
    refuse(fmt::format("its magic number at offset 0 is {} ({}expected {} or {})", magic,
                       magic == llmc_evaluation_magic ? "that of llm.c's multiple-choice files, " : "",
                       llmc_kinds[0].magic, llmc_kinds[1].magic));
  }
  if (std::uint32_t const version = header_word(file_, 1); version != kind->version) {
    refuse(
        fmt::format("its version at offset 4 is {} (expected {} with magic number {})", version, kind->version, magic));
  }
  width_ = kind->width;
  header_bytes_ = llmc_header_bytes;
  count_ = static_cast<std::int32_t>(header_word(file_, 2));
  std::int64_t const token_bytes = file_bytes - header_bytes_;
  if (count_ < 0 || count_ * width_ != token_bytes) {
    refuse(
        fmt::format("the header's count at offset 8 is {} tokens ({} bytes), but {} bytes of tokens follow (cut off, "
                    "or written to after the header)",
                    count_, count_ * width_, token_bytes));
  }
  description_ = fmt::format("llm.c, {} ({})", kind->name, reason);
}

void TokenFile::check_all() const {
  if (width_ < 4 && vocabulary_ >= std::int64_t{1} << (8 * width_)) return; // no id is too large
  std::vector<std::int32_t> piece(std::size_t{1} << 16);
  auto const step = static_cast<std::int64_t>(piece.size());
  for (std::int64_t first = 0; first < count_; first += step) {
    read(first, std::span(piece).first(static_cast<std::size_t>(std::min(step, count_ - first))));
  }
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> out) const {
  auto const n = static_cast<std::int64_t>(out.size());
  KOZERO_REQUIRE(first >= 0 && n <= count_ && first <= count_ - n,
                 "{} tokens from token {} on were asked for (file '{}' has {}: a fault of kozero); please report it", n,
                 first, path(), count_);
  if (n == 0) return;
  heartbeat().beat();
  for (; !out.empty(); first += most_at_once) {
    auto const ids = out.first(std::min(out.size(), static_cast<std::size_t>(most_at_once)));
    if (decode_at(first, ids) >= vocabulary_) refuse_first_unknown(first, ids);
    out = out.subspan(ids.size());
  }
}

/// At most most_at_once ids, of any value. Returns the largest.
std::uint32_t TokenFile::decode_at(std::int64_t first, std::span<std::int32_t> out) const {
  std::array<std::byte, 4 * most_at_once> bytes;
  file_.read(header_bytes_ + first * width_, std::span(bytes).first(out.size() * static_cast<std::size_t>(width_)));
  switch (width_) {
  case 1: return decode_all<1>(bytes.data(), out);
  case 2: return decode_all<2>(bytes.data(), out);
  default: return decode_all<4>(bytes.data(), out);
  }
}

/// From the front, the middle and the end.
std::vector<std::int32_t> TokenFile::sample() const {
  std::int64_t const piece = std::min(most_at_once, count_) / 4 * 4;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(3 * piece));
  for (std::int64_t i = 0; i < 3; ++i) {
    std::int64_t const first = (count_ - piece) / 8 * i * 4; // whole words of 8 bytes, whatever is in them
    decode_at(first, std::span(ids).subspan(static_cast<std::size_t>(i * piece), static_cast<std::size_t>(piece)));
  }
  return ids;
}

std::vector<std::string> TokenFile::doubts() const {
  std::vector<std::string> lines;
  auto const add = [&](std::string const& doubt) {
    lines.push_back(fmt::format("'{}', read as {}: {}", path(), description_, doubt));
  };
  if (foreign_) add(fmt::format("it begins as if it were {}; if so, {}", foreign_->name, foreign_->advice));
  if (auto const doubt = doubt_about(sample(), width_)) add(*doubt);
  // Some models have a few ids beside the bytes.
  if (is_text() && vocabulary_ > 512) {
    add(fmt::format("bytes are ids below 256, and model.vocabulary is {} (nearly all of its rows learn nothing); set "
                    "model.vocabulary: 256, or give a file of token ids",
                    vocabulary_));
  }
  if (width_ == 2 && vocabulary_ > ids_of_16_bits) {
    add(fmt::format("ids of 16 bits are below 65536, and model.vocabulary is {}; is it the file's?", vocabulary_));
  }
  return lines;
}

void TokenFile::refuse_first_unknown(std::int64_t first, std::span<std::int32_t const> ids) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto const id = static_cast<std::uint32_t>(ids[i]); // ids of 2^31 and more are negative there
    if (id >= vocabulary_) refuse_token(first + static_cast<std::int64_t>(i), id);
  }
}

void TokenFile::refuse_token(std::int64_t index, std::uint32_t id) const {
  throw InputError(
      fmt::format("'{}' has token id {} at byte offset {}, token {} (read as {}; ids must be below "
                  "model.vocabulary = {}); set model.vocabulary to that of the file's tokenizer, or correct "
                  "data.format",
                  path(), id, header_bytes_ + index * width_, index, description_, vocabulary_));
}

} // namespace kozero
