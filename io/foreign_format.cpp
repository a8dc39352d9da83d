#include "io/foreign_format.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace kozero {

namespace {

using namespace std::string_view_literals;

constexpr char const* unpack = "unpack it and give the file that is in it";
constexpr char const* write_ids = "write its token ids alone, as uint16 or uint32, or its text";

/// Sources: file(1)'s magic, and the specifications of the formats.
struct Signature {
  std::size_t offset;
  std::string_view bytes;
  char const* name;
  char const* advice;
};
constexpr std::array signatures = std::to_array<Signature>({
    {0, "\x93NUMPY"sv, "a NumPy array (.npy)", "write the ids alone, with array.tofile(…) as uint16 or uint32"},
    {0, "PK\x03\x04"sv, "a zip archive (.zip, .npz, a PyTorch file)", unpack},
    {0, "\x28\xb5\x2f\xfd"sv, "compressed by zstd", unpack},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "compressed by xz", unpack},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive", unpack},
    {0, "\x04\x22\x4d\x18"sv, "compressed by lz4", unpack},
    {257, "ustar"sv, "a tar archive", unpack},
    {0, "PAR1"sv, "a Parquet file", write_ids},
    {0, "ARROW1\0\0"sv, "an Arrow file", write_ids},
    {0, "\xff\xff\xff\xff\x10\0\0\0"sv, "an Arrow stream", write_ids},
    {0, "FEA1"sv, "a Feather file", write_ids},
    {0, "ORC\x08"sv, "an ORC file", write_ids},
    {0, "Obj\x01"sv, "an Avro file", write_ids},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file", write_ids},
    {0, "SQLite format 3\0"sv, "an SQLite database", write_ids},
    {0, "MMIDIDX\0\0"sv, "an index of Megatron (.idx)", "give the .bin beside it"},
    {0, "GGUF"sv, "a model (GGUF)", "give a file of text or token ids"},
    {0,
     "\x7f"
     "ELF"sv,
     "a program (ELF)", "give a file of text or token ids"},
});

/// A character that no text has.
bool is_control(char c) {
  auto const byte = static_cast<unsigned char>(c);
  return byte < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f';
}

std::string_view text_of(std::span<std::byte const> bytes) {
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// RFC 1952: two bytes, method 8, three reserved bits of zero. Short; the other bytes make a chance less likely: flags
/// of none but the name, and an operating system that there is.
bool is_gzip(std::string_view head) {
  if (head.size() < 10 || !head.starts_with("\x1f\x8b\x08"sv)) return false;
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(head[i]); };
  return (byte(3) & ~0x08u) == 0 && (byte(8) == 0 || byte(8) == 2 || byte(8) == 4) && (byte(9) <= 13 || byte(9) == 255);
}

/// "BZh", a level, and pi.
bool is_bzip2(std::string_view head) {
  return head.size() >= 10 && head.starts_with("BZh"sv) && head[3] >= '1' && head[3] <= '9' &&
         head.substr(4, 6) == "\x31\x41\x59\x26\x53\x59"sv;
}

/// The length of a header in JSON, which is below 100 MB, and its first characters.
bool is_safetensors(std::string_view head) {
  if (head.size() < 10) return false;
  bool const is_short = head.substr(4, 4) == "\0\0\0\0"sv && static_cast<unsigned char>(head[3]) < 6;
  return is_short && head.substr(8, 2) == "{\""sv;
}

/// Protocol 2 and above begin with their number, 4 and above with a frame.
bool is_pickle(std::string_view head) {
  return head.size() >= 11 && (head.starts_with("\x80\x04\x95"sv) || head.starts_with("\x80\x05\x95"sv)) &&
         head.substr(8, 3) == "\0\0\0"sv;
}

} // namespace

std::optional<ForeignFormat> foreign_format(std::span<std::byte const> bytes) {
  std::string_view const head = text_of(bytes);
  bool const is_binary = std::ranges::any_of(head, is_control);
  for (Signature const& signature : signatures) {
    if (head.size() < signature.offset || !is_binary) continue;
    if (head.substr(signature.offset).starts_with(signature.bytes)) return {{signature.name, signature.advice}};
  }
  if (head.starts_with("%PDF-"sv)) return {{"a PDF document", "give its text"}};
  if (is_gzip(head)) return {{"compressed by gzip", unpack}};
  if (is_bzip2(head)) return {{"compressed by bzip2", unpack}};
  if (is_safetensors(head)) return {{"a file of tensors (safetensors)", "give a file of text or token ids"}};
  if (is_pickle(head)) return {{"a pickle of Python", write_ids}};
  return {};
}

} // namespace kozero
