#pragma once
// What the fuzz targets share: a folder in memory, and that an Error is a good end.

#include "core/error.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace kozero::fuzz {

inline std::string_view text_of(unsigned char const* data, std::size_t size) {
  return {reinterpret_cast<char const*>(data), size};
}

/// Whether the call throws an Error: bad input is refused in words. Any other exception is a find.
template <class Call>
bool refused(Call const& call) {
  try {
    call();
    return false;
  } catch (Error const&) {
    return true;
  }
}

/// This process' folder, in the one that scripts/fuzz makes and removes, in memory.
inline std::string const& scratch() {
  static std::string const path = [] {
    char const* const parent = std::getenv("KOZERO_FUZZ_FOLDER");
    std::string name = std::string(parent ? parent : "/tmp") + "/kozero-fuzz-" + std::to_string(::getpid());
    std::filesystem::create_directories(name);
    return name;
  }();
  return path;
}

inline std::string write(std::string const& name, std::string_view bytes) {
  std::string path = scratch() + "/" + name;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}

} // namespace kozero::fuzz
