#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace kozero {

/// A file that holds no plain tokens or text, by how it begins.
struct ForeignFormat {
  std::string name;   // "a NumPy array (.npy)"
  std::string advice; // "write the ids alone, with array.tofile(…)"
};

/// Bytes of a file's front that are enough to tell.
inline constexpr std::size_t foreign_head_bytes = 512;

/// The format that a file of that front has, if it is one that people give by mistake. A text is none, whatever letters
/// it begins with.
std::optional<ForeignFormat> foreign_format(std::span<std::byte const> head);

} // namespace kozero
