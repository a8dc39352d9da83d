#include "io/token_file.hpp"

#include "core/error.hpp"
#include "core/heartbeat.hpp"

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
std::uint32_t header_word(std::span<std::byte const> bytes, std::size_t index) {
  return bytes.size() < 4 * (index + 1) ? 0 : decode<4>(bytes.data() + 4 * index);
}

} // namespace

TokenFile::TokenFile(std::string path, DataFormat format, std::int64_t vocabulary)
    : path_(std::move(path)), file_(path_), vocabulary_(vocabulary) {
  interpret(format);
  if (static_cast<std::int64_t>(file_.bytes().size()) <= checked_at_start_bytes) {
    file_.expect(MappedFile::Access::whole);
    check_all();
  } else {
    file_.expect(MappedFile::Access::random); // windows are read in shuffled order
  }
}

void TokenFile::interpret(DataFormat format) {
  std::uint32_t const magic = header_word(file_.bytes(), 0);
  bool const is_llmc = llmc_kind(magic) || magic == llmc_evaluation_magic;
  switch (format) {
  case DataFormat::llmc: return interpret_llmc("data.format");
  case DataFormat::automatic:
    if (is_llmc) return interpret_llmc("automatic: the file starts with llm.c's magic number");
    if (path_.ends_with(".bin")) return interpret_raw(DataFormat::uint16, "automatic: the name ends in .bin");
    return interpret_raw(DataFormat::text, "automatic: no llm.c header, and the name does not end in .bin");
  case DataFormat::text:
  case DataFormat::uint16:
  case DataFormat::uint32:
    if (is_llmc && format != DataFormat::text) {
      throw InputError(fmt::format("'{}' starts with llm.c's magic number {} (its header would be read as tokens); "
                                   "set data.format to llmc or auto",
                                   path_, magic));
    }
    return interpret_raw(format, "data.format");
  }
}

void TokenFile::interpret_raw(DataFormat format, std::string const& reason) {
  auto const file_bytes = static_cast<std::int64_t>(file_.bytes().size());
  width_ = format == DataFormat::text ? 1 : format == DataFormat::uint16 ? 2 : 4;
  count_ = file_bytes / width_;
  description_ = width_ == 1 ? fmt::format("text, a token a byte ({})", reason)
                             : fmt::format("uint{} token ids ({})", 8 * width_, reason);
  if (file_bytes % width_ != 0) {
    throw InputError(fmt::format("'{}' has {} bytes, of which the last {} at offset {} make no whole token of {} bytes "
                                 "(read as {}; cut off, or of another format); correct the file or data.format",
                                 path_, file_bytes, file_bytes % width_, count_ * width_, width_, description_));
  }
}

void TokenFile::interpret_llmc(std::string const& reason) {
  auto const bytes = file_.bytes();
  auto const file_bytes = static_cast<std::int64_t>(bytes.size());
  auto const refuse = [&](std::string const& what) {
    throw InputError(fmt::format("'{}' is no llm.c token file: {}; correct the file or data.format", path_, what));
  };
  if (file_bytes < llmc_header_bytes) {
    refuse(fmt::format("it has {} bytes (the header alone has {})", file_bytes, llmc_header_bytes));
  }
  std::uint32_t const magic = header_word(bytes, 0);
  std::optional<LlmcKind> const kind = llmc_kind(magic);
  if (!kind) {
    refuse(fmt::format("its magic number at offset 0 is {} ({}expected {} or {})", magic,
                       magic == llmc_evaluation_magic ? "that of llm.c's multiple-choice files, " : "",
                       llmc_kinds[0].magic, llmc_kinds[1].magic));
  }
  if (std::uint32_t const version = header_word(bytes, 1); version != kind->version) {
    refuse(
        fmt::format("its version at offset 4 is {} (expected {} with magic number {})", version, kind->version, magic));
  }
  width_ = kind->width;
  header_bytes_ = llmc_header_bytes;
  count_ = static_cast<std::int32_t>(header_word(bytes, 2));
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
                 first, path_, count_);
  if (n == 0) return;
  heartbeat().beat();
  std::byte const* const bytes = file_.bytes().data() + header_bytes_ + first * width_;
  std::uint32_t const largest = width_ == 1   ? decode_all<1>(bytes, out)
                                : width_ == 2 ? decode_all<2>(bytes, out)
                                              : decode_all<4>(bytes, out);
  if (largest < vocabulary_) return;
  for (std::int64_t i = 0; i < n; ++i) {
    // Ids of 2^31 and more are negative here.
    auto const id = static_cast<std::uint32_t>(out[static_cast<std::size_t>(i)]);
    if (id >= vocabulary_) refuse_token(first + i, id);
  }
}

void TokenFile::refuse_token(std::int64_t index, std::uint32_t id) const {
  throw InputError(
      fmt::format("'{}' has token id {} at byte offset {}, token {} (read as {}; ids must be below "
                  "model.vocabulary = {}); set model.vocabulary to that of the file's tokenizer, or correct "
                  "data.format",
                  path_, id, header_bytes_ + index * width_, index, description_, vocabulary_));
}

} // namespace kozero
