#include "io/text_file.hpp"

#include "core/error.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace kozero {

std::string read_text_file(std::string const& path) {
  constexpr std::size_t most_bytes = std::size_t{16} << 20;
  std::error_code status_error;
  auto const status = std::filesystem::status(path, status_error);
  if (std::filesystem::is_directory(status)) {
    throw InputError(fmt::format("'{}' is a folder (a text file is needed); name a file in it", path));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw InputError(
        fmt::format("can't open '{}' ({}{}); correct the path", path, std::strerror(errno), seen_from(path)));
  }
  std::string text(most_bytes + 1, '\0'); // not by the file's length: a pipe has none
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw InputError(fmt::format("can't read '{}' ({}); check the disk", path, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most_bytes) {
    throw InputError(fmt::format(
        "'{}' has more than 16 MiB (too much for a text that a person wrote); is it the right file?", path));
  }
  return text;
}

std::string seen_from(std::string const& path) {
  std::error_code unknown;
  auto const folder = std::filesystem::current_path(unknown);
  bool const is_relative = std::filesystem::path(path).is_relative();
  return is_relative && !unknown ? fmt::format("; looked for in '{}'", folder.string()) : "";
}

} // namespace kozero
