#pragma once
#include "config/config.hpp"
#include "io/data_file.hpp"
#include "io/data_fingerprint.hpp"
#include "io/foreign_format.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// A file of token ids. Integers in files are little-endian. Formats (DataFormat):
///
///   text     each byte is a token
///   uint16   token ids and nothing else, as nanoGPT's prepare.py writes them
///   uint32   the same, 4 bytes an id
///   llmc     llm.c's data files: 256 int32 (magic, version, number of tokens, zeros), then the ids:
///            uint16 for magic 20240520 version 1, uint32 for magic 20240801 version 7
///   automatic   llmc if the file starts with one of llm.c's magic numbers, else text unless its name ends in ".bin":
///               then uint16, or uint32 for a vocabulary above 65536; `description` says which and why
///
/// Every id that `read` hands out is below the vocabulary. Files of up to `checked_at_start_bytes` are checked whole
/// when opened; a larger one, whose scan would delay the start by minutes, only where it is read. What is wrong in a
/// file is an InputError that names file, offset and value; a file that cannot be read any more is an Error. One that
/// begins as an archive, an array of NumPy and the like is refused by name, but read where the format is given, as ids
/// may begin so too: that is a doubt.
///
///     TokenFile file("train.bin", DataFormat::automatic, 50257);
///     std::vector<std::int32_t> window(1025);
///     file.read(0, window);
class TokenFile {
public:
  static constexpr std::int64_t checked_at_start_bytes = std::int64_t{64} << 20;

  TokenFile(std::string path, DataFormat format, std::int64_t vocabulary);

  std::string const& path() const { return file_.path(); }
  /// Number of tokens.
  std::int64_t size() const { return count_; }
  /// "uint16 token ids (automatic: the name ends in .bin)"
  std::string const& description() const { return description_; }
  /// Whether tokens are bytes of text.
  bool is_text() const { return width_ == 1; }
  /// As it was when it was opened.
  DataFingerprint const& fingerprint() const { return fingerprint_; }
  /// What makes one doubt that it is read as it was written, or that the vocabulary is the file's; one line each.
  std::vector<std::string> doubts() const;
  /// Tokens [first, first + out.size()), which must be in the file. Any number of threads at a time.
  void read(std::int64_t first, std::span<std::int32_t> out) const;

private:
  void interpret(DataFormat format);
  void interpret_raw(DataFormat format, std::string const& reason);
  void interpret_llmc(std::string const& reason);
  void check_all() const;
  std::uint32_t decode_at(std::int64_t first, std::span<std::int32_t> out) const;
  std::vector<std::int32_t> sample() const;
  void refuse_first_unknown(std::int64_t first, std::span<std::int32_t const> ids) const;
  [[noreturn]] void refuse_token(std::int64_t index, std::uint32_t id) const;

  DataFile file_;
  std::optional<ForeignFormat> foreign_; // as which it begins
  std::int64_t vocabulary_;
  std::int64_t header_bytes_ = 0;
  std::int64_t width_ = 1; // bytes a token
  std::int64_t count_ = 0;
  std::string description_;
  DataFingerprint fingerprint_;
};

} // namespace kozero
