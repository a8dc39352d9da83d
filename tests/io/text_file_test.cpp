#include "core/error.hpp"
#include "io/text_file.hpp"
#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace kozero;

namespace {

std::string fault_of(std::string const& path) {
  try {
    read_text_file(path);
  } catch (InputError const& error) {
    return error.what();
  }
  return "";
}

bool mentions(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("a text file is read whole, or refused with its name and the reason", "[text_file]") {
  auto const folder = std::filesystem::temp_directory_path() / ("kozero-text-file-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::string const file = folder / "deck.yaml";
  std::string const text("a: 1\r\n\0b", 8);
  std::ofstream(file, std::ios::binary) << text;
  CHECK(read_text_file(file) == text);

  CHECK(mentions(fault_of(folder / "none.yaml"), "none.yaml' (No such file"));
  CHECK(mentions(fault_of(folder), "is a folder"));
  CHECK(mentions(fault_of(file + "/x"), "Not a directory"));
  std::ofstream(folder / "large", std::ios::binary) << std::string((std::size_t{16} << 20) + 1, ' ');
  CHECK(mentions(fault_of(folder / "large"), "more than 16 MiB"));
  if (::geteuid() != 0) { // root may read all
    std::filesystem::permissions(file, std::filesystem::perms::none);
    CHECK(mentions(fault_of(file), "Permission denied"));
  }
  std::filesystem::remove_all(folder);
}
