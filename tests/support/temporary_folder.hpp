#pragma once
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace kozero::test {

/// An empty folder that goes, with all that is in it, when the test case ends.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kozero-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder can be made");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;

  std::string const& path() const { return path_; }
  std::string file(std::string const& name) const { return path_ + "/" + name; }

  /// Writes a file of these bytes and returns its path.
  std::string write(std::string const& name, std::string const& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  std::string read(std::string const& name) const {
    std::ifstream in(file(name), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

private:
  std::string path_;
};

/// The message with which the call throws an E; empty when it does not.
template <class E, class Call>
std::string message_of(Call const& call) {
  try {
    call();
  } catch (E const& error) {
    return error.what();
  }
  return "";
}

/// True when all of the parts are in the text.
inline bool contains(std::string const& text, std::vector<std::string> const& parts) {
  for (auto const& part : parts) {
    if (text.find(part) == std::string::npos) return false;
  }
  return true;
}

} // namespace kozero::test
