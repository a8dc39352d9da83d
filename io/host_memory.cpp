#include "io/host_memory.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

namespace kozero {

namespace {

/// Where the kernel tells of the memory of a control group (Documentation/admin-guide/cgroup-v2.rst, "Memory", and
/// cgroup-v1/memory.rst).
struct GroupFiles {
  std::string_view controller; // in the line "number:controller:/path" of /proc/self/cgroup
  char const* folder;
  char const* limit;
  char const* used;
  // In memory.stat: file pages that the kernel takes back before memory runs out, within `used`.
  std::array<char const*, 2> caches;
};
constexpr GroupFiles versions[] = {
    {"", "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"memory",
     "/sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

/// The number after a name, in a file of lines that begin with a name.
std::optional<std::int64_t> number_after(std::string const& wanted, std::string const& path) {
  std::ifstream file(path);
  for (std::string name; file >> name;) {
    std::int64_t number = 0;
    if (name == wanted && file >> number) return number;
    std::getline(file, name);
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in(std::string const& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt; // no such file, or "max"
}

/// The process' group among those of a controller: "/path"; empty for the outermost one.
std::string control_group(std::string const& root, std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    auto const first = line.find(':');
    auto const second = line.find(':', first + 1);
    if (second == std::string::npos || line.substr(first + 1, second - first - 1) != controller) continue;
    std::string const path = line.substr(second + 1);
    return path == "/" ? "" : path;
  }
  return "";
}

/// What the limit of one group leaves.
std::optional<std::int64_t> left_in_group(std::string const& folder, GroupFiles const& files) {
  auto const limit = number_in(folder + "/" + files.limit);
  auto const used = number_in(folder + "/" + files.used);
  if (!limit || !used) return std::nullopt;
  std::int64_t cache = 0;
  for (auto const& name : files.caches) cache += number_after(name, folder + "/memory.stat").value_or(0);
  return std::max<std::int64_t>(*limit - std::max<std::int64_t>(*used - cache, 0), 0);
}

std::string identity_of(std::string const& folder) {
  struct stat status = {};
  ::stat(folder.c_str(), &status);
  return std::to_string(status.st_dev) + ':' + std::to_string(status.st_ino);
}

} // namespace

std::vector<MemoryBound> host_memory_bounds(std::string const& root) {
  std::vector<MemoryBound> bounds;
  if (auto const kib = number_after("MemAvailable:", root + "/proc/meminfo"))
    bounds.push_back({"the host", *kib * 1024, "host"});
  for (GroupFiles const& files : versions) {
    // A group is limited by all that it stands in.
    for (std::string group = control_group(root, files.controller);; group.resize(group.find_last_of('/'))) {
      std::string const folder = root + files.folder + group;
      if (auto const left = left_in_group(folder, files)) {
        bounds.push_back({"control group " + (group.empty() ? "/" : group), *left, identity_of(folder)});
      }
      if (group.find('/') == std::string::npos) break;
    }
  }
  return bounds;
}

std::optional<std::int64_t> available_host_memory(std::string const& root) {
  auto const bounds = host_memory_bounds(root);
  if (bounds.empty()) return std::nullopt;
  return std::ranges::min_element(bounds, {}, &MemoryBound::available)->available;
}

} // namespace kozero
