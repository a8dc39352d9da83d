#include "io/host_memory.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace kozero {

namespace {

/// MemAvailable of /proc/meminfo.
std::optional<std::int64_t> available_in_system() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    std::int64_t kib = 0;
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
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

/// The process' folder among the control groups of version 2: the line "0::/path" of /proc/self/cgroup.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "/";
}

} // namespace

std::optional<std::int64_t> available_host_memory() {
  std::optional<std::int64_t> least = available_in_system();
  // A group is limited by all that it stands in.
  for (std::string group = control_group();; group.resize(group.find_last_of('/'))) {
    std::string const folder = "/sys/fs/cgroup" + group;
    auto const limit = number_in(folder + "/memory.max");
    auto const used = number_in(folder + "/memory.current");
    if (limit && used) {
      std::int64_t const left = std::max<std::int64_t>(*limit - *used, 0);
      least = least ? std::min(*least, left) : left;
    }
    if (group.find_last_of('/') == std::string::npos) return least;
  }
}

} // namespace kozero
