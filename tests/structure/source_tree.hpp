#pragma once
// The source tree as text, for tests of its structure.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kozero::structure {

struct SourceFile {
  std::string path; // from the root: "src/core/error.hpp"
  std::string text;

  bool is_header() const { return path.ends_with(".hpp"); }
};

std::string read_text(std::filesystem::path const& path);

/// All .hpp and .cpp files below the folders, by path.
std::vector<SourceFile> read_tree(std::filesystem::path const& root, std::vector<std::string> const& folders);

/// "core", "kernels", "app", … of a file; empty where it belongs to none.
std::string part_of(std::string_view path);

/// The text with blanks in place of comments, and of what is between quotes; lines stay where they are.
std::string code_of(std::string_view text);

struct Include {
  int line;
  std::string name; // as it is written, between the quotes or brackets
  bool quoted;
};
std::vector<Include> includes_of(std::string_view text);

} // namespace kozero::structure
