// The reference page is the schema's.
#include "config/schema.hpp"
#include "io/deck.hpp"
#include "support/catch.hpp"

using namespace kozero;

TEST_CASE("every key is in the reference", "[deck]") {
  std::string const page = deck_reference();
  Config config;
  for (auto const& key : keys_of(config)) {
    INFO(key.path);
    std::size_t const section = page.find("\n## " + key.section() + "\n");
    REQUIRE(section != std::string::npos);
    std::size_t const end = page.find("\n## ", section + 1);
    std::size_t const row = page.find("\n| `" + key.path.substr(key.section().size() + 1) + "` | ", section);
    CHECK(row < end);
    CHECK(row != std::string::npos);
  }
}

TEST_CASE("doc/deck.md is up to date", "[deck]") {
  std::string const path = KOZERO_SOURCE_DIR "/doc/deck.md";
  INFO("doc/deck.md is not what src/config/schema.cpp says; write it again: kozero check --reference > doc/deck.md");
  CHECK((read_text_file(path) == deck_reference()));
}
