#include "structure/source_tree.hpp"
#include "structure/tour.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <regex>

using namespace kozero::structure;

TEST_CASE("each hop of doc/tour.md is a line that is there") {
  auto const hops = hops_of(read_text(KOZERO_SOURCE_DIR "/doc/tour.md"));
  CHECK(hops.size() > 40);
  for (TourHop const& hop : hops) {
    INFO(hop.text() << " (find them again: build/ci/tests/structure/renumber_tour)");
    CHECK(line_of(hop, KOZERO_SOURCE_DIR) == hop.line);
  }
}

TEST_CASE("each place in doc/tour.md has its code beside it") {
  std::string const page = read_text(KOZERO_SOURCE_DIR "/doc/tour.md");
  std::regex const place("\\w:\\d");
  auto const places = std::distance(std::sregex_iterator(page.begin(), page.end(), place), {});
  CHECK(static_cast<std::size_t>(places) == hops_of(page).size());
}

TEST_CASE("a hop whose line has moved, is twice there or is gone is found") {
  kozero::test::TemporaryFolder const folder;
  folder.write("a.cpp", "one\ntwo();\nthree(); two\n");
  std::string const page = "1. `a.cpp:2` `three(`: why\n2. and `a.cpp:7`\n   `one`, `not.cpp:1`\n";
  auto const hops = hops_of(page);
  REQUIRE(hops.size() == 2);
  CHECK((hops[0].path == "a.cpp" && hops[0].line == 2 && hops[0].code == "three("));
  CHECK((line_of(hops[0], folder.path()) == 3 && line_of(hops[1], folder.path()) == 1));
  CHECK(with_lines_renumbered(page, folder.path()) ==
        "1. `a.cpp:3` `three(`: why\n2. and `a.cpp:1`\n   `one`, `not.cpp:1`\n");
  CHECK_THROWS(line_of({"a.cpp", 1, "two"}, folder.path()));
  CHECK_THROWS(line_of({"a.cpp", 1, "four"}, folder.path()));
  CHECK_THROWS(line_of({"b.cpp", 1, "one"}, folder.path()));
}
