#include "structure/structure_file.hpp"

#include "structure/source_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace kozero::structure {

namespace {

std::vector<std::string> words(std::string const& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Whether * in the pattern stands for the rest.
bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.empty() || path.empty()) return pattern == path || pattern == "*";
  if (pattern[0] != '*') return pattern[0] == path[0] && matches(pattern.substr(1), path.substr(1));
  return matches(pattern.substr(1), path) || matches(pattern, path.substr(1));
}

bool match_any(std::vector<std::string> const& patterns, std::string_view path) {
  return std::ranges::any_of(patterns, [&](std::string const& pattern) { return matches(pattern, path); });
}

/// Reads line by line; a key belongs to the folder or home before it.
class Parser {
public:
  Structure parse(std::string const& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++number_;
      if (line.empty() || line[0] == '#') continue;
      take(line);
    }
    follow_arrows();
    return std::move(result_);
  }

private:
  void take(std::string const& line) {
    static std::regex const form(R"(( *)(\S+)(?: +(\S.*))?)");
    std::smatch part;
    if (!std::regex_match(line, part, form)) refuse("is neither a record nor a key");
    std::string const key = part[2];
    std::string const value = part[3];
    if (part[1].length() > 0) {
      set(key, value);
    } else if (key == "storey") {
      next_starts_storey_ = true;
    } else if (key == "folder") {
      in_home_ = false;
      result_.folders.push_back({.path = value, .starts_storey = std::exchange(next_starts_storey_, false)});
    } else if (key == "home") {
      in_home_ = true;
      result_.homes.push_back({.what = value});
    } else {
      refuse("begins no folder, storey or home");
    }
  }

  void set(std::string const& key, std::string const& value) {
    if (in_home_) {
      Home& home = result_.homes.back();
      if (key == "includes") return void(home.includes = std::regex(value));
      if (key == "code") return void(home.code = std::regex(value));
      if (key == "in") return void(home.in = words(value));
      if (key == "also") return void(home.also = words(value));
    } else if (!result_.folders.empty()) {
      Folder& folder = result_.folders.back();
      if (key == "holds") return void(folder.holds = value);
      if (key == "below") return void(folder.below = words(value));
    }
    refuse("is no key of the record before it");
  }

  void follow_arrows() {
    for (auto folder = result_.folders.rbegin(); folder != result_.folders.rend(); ++folder) {
      folder->reached = {last_name(folder->path)};
      for (std::string const& name : folder->below) {
        auto const target = std::find_if(result_.folders.rbegin(), folder,
                                         [&](Folder const& other) { return last_name(other.path) == name; });
        if (target == folder) {
          throw std::runtime_error(
              fmt::format("doc/structure.txt: {} points to {}, which is no folder further below", folder->path, name));
        }
        folder->reached.insert(target->reached.begin(), target->reached.end());
      }
    }
  }

  static std::string last_name(std::string const& path) { return path.substr(path.rfind('/') + 1); }

  [[noreturn]] void refuse(std::string const& why) const {
    throw std::runtime_error(fmt::format("doc/structure.txt: line {} {}", number_, why));
  }

  Structure result_;
  int number_ = 0;
  bool in_home_ = false;
  bool next_starts_storey_ = false;
};

std::string draw_folders(Structure const& structure) {
  std::size_t path = 0;
  std::size_t holds = 0;
  for (Folder const& folder : structure.folders) {
    path = std::max(path, folder.path.size());
    holds = std::max(holds, folder.holds.size());
  }
  std::string drawn = "```\n";
  for (Folder const& folder : structure.folders) {
    if (folder.starts_storey) drawn += fmt::format("{:─<{}}\n", "", path + holds + 8);
    std::string line = fmt::format(" {:<{}}  {:<{}}", folder.path, path, folder.holds, holds);
    if (!folder.below.empty()) line += fmt::format("  ▸ {}", fmt::join(folder.below, ", "));
    drawn += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return drawn + "```\n";
}

std::string draw_homes(Structure const& structure) {
  std::string drawn = "| what | home |\n|---|---|\n";
  for (Home const& home : structure.homes) drawn += fmt::format("| {} | {} |\n", home.what, home.places());
  return drawn;
}

void replace_block(std::string& page, std::string const& name, std::string const& content) {
  std::string const begin = fmt::format("<!-- {} -->\n", name);
  std::string const end = fmt::format("<!-- /{} -->\n", name);
  std::size_t const from = page.find(begin);
  std::size_t const to = page.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from) {
    throw std::runtime_error("the page has no block between " + begin + "and " + end);
  }
  page.replace(from + begin.size(), to - from - begin.size(), content);
}

} // namespace

bool Home::holds(std::string_view path) const { return match_any(in, path); }

bool Home::watches(std::string_view path) const { return match_any(also, path); }

std::string Home::places() const { return fmt::format("`{}`", fmt::join(in, "`, `")); }

Folder const* Structure::folder(std::string_view name) const {
  auto const found = std::ranges::find(folders, name, [](Folder const& folder) { return part_of(folder.path + '/'); });
  return found == folders.end() ? nullptr : &*found;
}

Structure parse_structure(std::string const& text) { return Parser().parse(text); }

Structure const& structure() {
  static Structure const read = parse_structure(read_text(KOZERO_SOURCE_DIR "/doc/structure.txt"));
  return read;
}

std::string with_blocks_drawn(std::string page, Structure const& structure) {
  replace_block(page, "folders", draw_folders(structure));
  replace_block(page, "homes", draw_homes(structure));
  return page;
}

} // namespace kozero::structure
