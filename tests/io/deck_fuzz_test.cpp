// Decks that an accident made: they are read or refused, nothing else.
#include "core/error.hpp"
#include "io/deck.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <random>
#include <sstream>

using namespace kozero;

namespace {

std::string mutate(std::string text, std::mt19937_64& random) {
  static std::vector<std::string> const pieces = {"{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ":",
                                                  ": ",
                                                  ",",
                                                  "\n",
                                                  "\n  ",
                                                  "\t",
                                                  "#",
                                                  "&a ",
                                                  "*a",
                                                  "!!x ",
                                                  "|",
                                                  ">",
                                                  "-",
                                                  "- ",
                                                  "---\n",
                                                  "...\n",
                                                  "?",
                                                  "? ",
                                                  "<<: ",
                                                  "'",
                                                  "\"",
                                                  "\\",
                                                  "%",
                                                  "@",
                                                  "~",
                                                  "null",
                                                  "1e400",
                                                  "nan",
                                                  "-1",
                                                  "0",
                                                  "no",
                                                  std::string(1, '\0'),
                                                  "\x04",
                                                  "\xff",
                                                  "\xc3\xa9",
                                                  "run: ",
                                                  "lr: 1\n",
                                                  "none",
                                                  "\r",
                                                  "%YAML 1.2\n",
                                                  "\xef\xbb\xbf",
                                                  "999999999999999999999"};
  for (auto edits = 1 + random() % 2; edits > 0; --edits) {
    std::size_t const at = random() % (text.size() + 1);
    std::size_t const length = std::min<std::size_t>(random() % 12, text.size() - at);
    switch (random() % 4) {
    case 0: text.insert(at, pieces[random() % pieces.size()]); break;
    case 1: text.erase(at, length); break;
    case 2: text.insert(random() % (text.size() + 1), text.substr(at, length)); break;
    case 3:
      if (at < text.size()) text[at] = static_cast<char>(random() % 256);
      break;
    }
  }
  return text;
}

} // namespace

TEST_CASE("a mutated deck is read or refused", "[deck]") {
  std::string const valid = R"(# a comment
run: {name: "a b", dir: runs/a, updates: 2k, time_limit: 10min}
model:
  size: gpt2-124m
  context: 256
data:
  train: 'x y.bin'
  validation: 0.05
optimizer: {lr: 1e-3, betas: [0.9, 0.95], clip: none}
offload: {optimizer: none, delayed_update: {start: 40}}
memory: {device_limit: 512MiB}
)";
  std::mt19937_64 random(23);
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string const good_override = "optimizer.betas=[0.9, 0.95]";
    std::string const text = i % 3 == 0 ? valid : mutate(valid, random);
    std::string const override_text = i % 3 == 1 ? good_override : mutate(good_override, random);
    INFO(text << '\n' << override_text);
    try {
      Deck const deck = read_deck(text, "deck.yaml", {override_text});
      // What is accepted means the same when printed and read again.
      CHECK(read_deck(deck.resolved_yaml, "resolved").config == deck.config);
      ++read;
    } catch (InputError const& error) {
      std::istringstream lines{std::string(error.what())};
      for (std::string line; std::getline(lines, line);) {
        CHECK((line.starts_with("deck.yaml:") || line.starts_with("command line: ")));
      }
      ++refused;
    }
  }
  // Mutations reach both.
  CHECK(read > 100);
  CHECK(refused > 100);
}
