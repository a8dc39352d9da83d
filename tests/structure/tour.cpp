#include "structure/tour.hpp"

#include "structure/source_tree.hpp"

#include <fmt/format.h>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace kozero::structure {

namespace {

// Between a place and its code a line of the page may end.
std::regex const& form() {
  static std::regex const of_hop("`([\\w./-]+):(\\d+)`\\s+`([^`\n]+)`");
  return of_hop;
}

TourHop hop_of(std::smatch const& match) { return {match[1], std::stoi(match[2]), match[3]}; }

} // namespace

std::string TourHop::text() const { return fmt::format("`{}:{}` `{}`", path, line, code); }

std::vector<TourHop> hops_of(std::string const& page) {
  std::vector<TourHop> hops;
  for (std::sregex_iterator at(page.begin(), page.end(), form()), end; at != end; ++at) hops.push_back(hop_of(*at));
  return hops;
}

int line_of(TourHop const& hop, std::filesystem::path const& root) {
  std::istringstream lines(read_text(root / hop.path));
  std::string line;
  std::vector<int> found;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.find(hop.code) != std::string::npos) found.push_back(number);
  }
  if (found.size() == 1) return found[0];
  throw std::runtime_error(
      fmt::format("doc/tour.md: {} lines of '{}' have `{}` (a hop names one line); quote other code", found.size(),
                  hop.path, hop.code));
}

std::string with_lines_renumbered(std::string const& page, std::filesystem::path const& root) {
  std::string renumbered;
  std::size_t kept = 0; // characters of the page
  for (std::sregex_iterator at(page.begin(), page.end(), form()), end; at != end; ++at) {
    auto const begin = static_cast<std::size_t>(at->position(2));
    renumbered += page.substr(kept, begin - kept) + std::to_string(line_of(hop_of(*at), root));
    kept = begin + static_cast<std::size_t>(at->length(2));
  }
  return renumbered + page.substr(kept);
}

} // namespace kozero::structure
