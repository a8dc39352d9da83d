#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace kozero {

/// Bytes that this user may still write where `path` is, or where it will be made; nothing where the file system does
/// not tell. What a quota leaves is not known.
std::optional<std::int64_t> free_disk_bytes(std::filesystem::path const& path);

} // namespace kozero
