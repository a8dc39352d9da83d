#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kozero {

/// What makes one doubt that a file's tokens are of `width` bytes, to be read after the file's name: "has …; …".
/// `sample` are ids of the file, in runs of four that begin at a multiple of four.
std::optional<std::string> doubt_about(std::span<std::int32_t const> sample, std::int64_t width);

} // namespace kozero
