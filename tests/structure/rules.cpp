#include "structure/rules.hpp"

#include "structure/structure_file.hpp"

#include <regex>
#include <sstream>

namespace kozero::structure {

namespace {

std::string place(SourceFile const& file, int line) { return file.path + ':' + std::to_string(line) + ": "; }

void check_arrows(SourceFile const& file, Include const& include, std::vector<std::string>& found) {
  Folder const* const from = structure().folder(part_of(file.path));
  Folder const* const to = structure().folder(part_of(include.name));
  if (!from) {
    found.push_back(place(file, include.line) + "its folder has no place in doc/structure.txt");
  } else if (to) {
    if (!from->reached.contains(part_of(include.name))) {
      found.push_back(place(file, include.line) + from->path + " includes " + include.name +
                      ", against the arrows of doc/structure.txt");
    }
  } else if (include.quoted) {
    found.push_back(place(file, include.line) + '"' + include.name + "\" is not \"folder/file\" of this project");
  }
}

void check_include_homes(SourceFile const& file, Include const& include, std::vector<std::string>& found) {
  for (Home const& home : structure().homes) {
    if (!home.includes || home.holds(file.path) || !std::regex_match(include.name, *home.includes)) continue;
    found.push_back(place(file, include.line) + include.name + ": " + home.what + " has its home in " + home.places());
  }
}

/// `code`: of the file.
void check_code_home(SourceFile const& file, std::string const& code, Home const& home,
                     std::vector<std::string>& found) {
  static std::regex const directive(R"(^\s*#\s*include\b)");
  if (!home.code || home.holds(file.path)) return;
  std::istringstream lines(code);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, directive) || !std::regex_search(line, match, *home.code)) continue;
    found.push_back(place(file, number) + '\'' + match.str() + "': " + home.what + " has its home in " + home.places());
  }
}

/// A family of models is named in its own folder and where it is registered; comments and texts count too.
void check_family_names(SourceFile const& file, std::vector<std::string>& found) {
  static std::regex const home(R"(src/model/gpt2/.*|src/model/families\.cpp)");
  static std::regex const name(R"([Gg][Pp][Tt]-?2)");
  if (std::regex_match(file.path, home)) return;
  std::istringstream lines(file.text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, match, name)) {
      found.push_back(place(file, number) + '\'' + match.str() + "': a family of models is named in its folder alone");
    }
  }
}

} // namespace

std::vector<std::string> violations(SourceFile const& file) {
  std::vector<std::string> found;
  for (Include const& include : includes_of(file.text)) {
    check_arrows(file, include, found);
    check_include_homes(file, include, found);
  }
  std::string const code = code_of(file.text);
  for (Home const& home : structure().homes) check_code_home(file, code, home, found);
  check_family_names(file, found);
  if (file.is_header() && !file.text.starts_with("#pragma once\n")) {
    found.push_back(place(file, 1) + "a header starts with #pragma once");
  }
  return found;
}

std::vector<std::string> violations_outside(SourceFile const& file) {
  std::vector<std::string> found;
  std::string const code = code_of(file.text);
  for (Home const& home : structure().homes) {
    if (home.watches(file.path)) check_code_home(file, code, home, found);
  }
  return found;
}

} // namespace kozero::structure
