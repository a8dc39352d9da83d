#include "config/paths.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kozero {

namespace {

/// What a shell makes of a path.
struct Expansion {
  std::string seen;                // "$HOME"
  std::optional<std::string> path; // nothing where it is not known here
  void add(char const* text) {
    if (!text) path.reset();
    if (path) *path += text;
  }
};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// The variable that a text begins with, "$HOME" or "${HOME}"; empty where it begins otherwise.
std::string_view variable_of(std::string_view text) {
  if (!text.starts_with('$')) return {};
  bool const braces = text.starts_with("${");
  std::size_t const begin = braces ? 2 : 1;
  std::size_t end = begin;
  while (end < text.size() && is_word(text[end])) ++end;
  bool const is_name = end > begin && (text[begin] < '0' || text[begin] > '9');
  bool const is_whole = !braces || (end < text.size() && text[end] == '}');
  return is_name && is_whole ? text.substr(0, end + (braces ? 1 : 0)) : std::string_view();
}

std::string name_in(std::string_view variable) {
  std::string name;
  for (char const c : variable) {
    if (is_word(c)) name += c;
  }
  return name;
}

/// Its `seen` is empty where a shell leaves the path as it is.
Expansion expand(std::string_view path) {
  Expansion expansion{"", ""};
  if (path.starts_with('~')) {
    expansion.seen = path.substr(0, path.find('/'));
    expansion.add(expansion.seen == "~" ? std::getenv("HOME") : nullptr);
    path.remove_prefix(expansion.seen.size());
  }
  while (!path.empty()) {
    std::string_view const variable = variable_of(path);
    if (variable.empty()) {
      expansion.add(std::string(1, path.front()).c_str());
      path.remove_prefix(1);
      continue;
    }
    if (expansion.seen.empty()) expansion.seen = variable;
    expansion.add(std::getenv(name_in(variable).c_str()));
    path.remove_prefix(variable.size());
  }
  return expansion;
}

} // namespace

std::string path_fault(std::string const& path) {
  Expansion const expansion = expand(path);
  std::error_code unknown;
  if (expansion.seen.empty() || std::filesystem::exists(path, unknown)) return {}; // somebody called it so
  return fmt::format("'{}' has {} in it (a deck's paths are taken as they are: no shell has put a folder there); write "
                     "{}",
                     path, expansion.seen, expansion.path.value_or("the path out"));
}

} // namespace kozero
