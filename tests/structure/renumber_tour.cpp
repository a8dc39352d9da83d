// renumber_tour: gives the hops of doc/tour.md the lines that their code has now.
#include "structure/source_tree.hpp"
#include "structure/tour.hpp"

#include <exception>
#include <fstream>
#include <iostream>

int main() {
  using namespace kozero::structure;
  try {
    std::string const path = KOZERO_SOURCE_DIR "/doc/tour.md";
    std::string const page = with_lines_renumbered(read_text(path), KOZERO_SOURCE_DIR);
    std::ofstream(path) << page;
  } catch (std::exception const& error) {
    std::cerr << "renumber_tour: error: " << error.what() << '\n';
    return 1;
  }
}
