// draw_structure: draws the blocks of doc/architecture.md anew from doc/structure.txt.
#include "structure/source_tree.hpp"
#include "structure/structure_file.hpp"

#include <exception>
#include <fstream>
#include <iostream>

int main() {
  using namespace kozero::structure;
  try {
    std::string const path = KOZERO_SOURCE_DIR "/doc/architecture.md";
    std::string const page = with_blocks_drawn(read_text(path), structure());
    std::ofstream(path) << page;
  } catch (std::exception const& error) {
    std::cerr << "draw_structure: error: " << error.what() << '\n';
    return 1;
  }
}
