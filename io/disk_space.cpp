#include "io/disk_space.hpp"

#include <algorithm>
#include <limits>

#include <sys/statvfs.h>

namespace kozero {

namespace fs = std::filesystem;

std::optional<std::int64_t> free_disk_bytes(fs::path const& path) {
  std::error_code not_known;
  fs::path there = fs::absolute(path, not_known);
  while (!fs::exists(there, not_known) && there.has_relative_path()) there = there.parent_path();
  struct statvfs system = {};
  // Some network file systems say 0 of everything.
  if (::statvfs(there.c_str(), &system) != 0 || system.f_blocks == 0 || system.f_frsize == 0) return {};
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  auto const blocks = std::min<std::uint64_t>(system.f_bavail, most / system.f_frsize);
  return static_cast<std::int64_t>(blocks * system.f_frsize);
}

} // namespace kozero
