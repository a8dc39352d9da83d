#pragma once
// doc/tour.md: places in the sources, each with the code that stands there.

#include <filesystem>
#include <string>
#include <vector>

namespace kozero::structure {

/// "`src/core/rng.hpp:9` `enum class RngPurpose`" in a page.
struct TourHop {
  std::string path; // from the root
  int line = 0;     // from 1, as the page has it
  std::string code; // a part of that line, and of no other line of the file

  std::string text() const;
};

/// All hops of a page, in its order.
std::vector<TourHop> hops_of(std::string const& page);

/// The one line of the file that has the hop's code. Throws a std::runtime_error where there is no such file, or not
/// exactly one such line.
int line_of(TourHop const& hop, std::filesystem::path const& root);

/// The page with the lines that its hops have now. Throws as line_of.
std::string with_lines_renumbered(std::string const& page, std::filesystem::path const& root);

} // namespace kozero::structure
