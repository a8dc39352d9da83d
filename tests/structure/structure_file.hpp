#pragma once
// doc/structure.txt, which says its own form.

#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kozero::structure {

struct Folder {
  std::string path; // "src/core"
  std::string holds;
  std::vector<std::string> below; // as they are written: "layout", "core"
  bool starts_storey = false;
  std::set<std::string> reached; // what it may include: itself, and all that arrows lead to
};

/// Something that only some files may use: a header that they include, or a word in their code.
struct Home {
  std::string what;
  std::optional<std::regex> includes; // of the whole name
  std::optional<std::regex> code;     // of a part of a line
  std::vector<std::string> in;
  std::vector<std::string> also;

  bool holds(std::string_view path) const;
  /// Whether a file of no folder keeps to it too.
  bool watches(std::string_view path) const;
  /// "`src/comm/*.cpp`, `src/core/runtime.cpp`"
  std::string places() const;
};

struct Structure {
  std::vector<Folder> folders; // top to bottom
  std::vector<Home> homes;

  /// By its last name; null where there is none.
  Folder const* folder(std::string_view name) const;
};

/// Throws a std::runtime_error with the line's number for a line of another form, and for an arrow that does not lead
/// to a folder further below.
Structure parse_structure(std::string const& text);

/// The one of this tree.
Structure const& structure();

/// A page with its blocks between "<!-- folders -->" and "<!-- homes -->" and their ends, "<!-- /folders -->" …, drawn
/// anew. Throws where the page lacks one.
std::string with_blocks_drawn(std::string page, Structure const& structure);

} // namespace kozero::structure
