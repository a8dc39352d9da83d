#pragma once
#include "config/check.hpp"
#include "config/config.hpp"
#include "io/text_file.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kozero {

/// Where a value comes from.
struct Origin {
  enum class Kind { preset, deck, named_size, command_line };
  Kind kind = Kind::preset;
  int line = 0; // of the value in the deck, from 1
  int column = 0;
};

/// An input deck, read, checked and completed.
///
///     std::string const text = read_text_file(path);                       // rank 0
///     Deck const deck = read_deck(text, path, {"optimizer.lr=1e-4"});      // every rank, from the same bytes
struct Deck {
  Config config;
  std::map<std::string, Origin> origins; // of every key, by its path: "optimizer.lr"
  std::string resolved_yaml;             // all keys with their values, a deck itself; origins as comments
  std::vector<std::string> warnings;     // one line each
};

/// Reads YAML text, then overrides "key.path=value", the last of several winning. `name` is for messages:
/// "deck.yaml:14:5: …". InputError with all faults, one a line, when there are any. Looks at no file.
Deck read_deck(std::string_view text, std::string const& name, std::vector<std::string> const& overrides = {});

/// The deck in a checkpoint, as far as today's keys can say it.
struct StoredDeck {
  Config config;
  std::set<std::string> unread;   // keys with a value that is refused today: here they have their defaults
  std::vector<std::string> notes; // what was left out, one line each
};

/// Reads the deck of a checkpoint of that format_version, which any kozero may have written: keys that are no more are
/// left out, values that today's words or limits refuse become the defaults. But the keys that make the model are as
/// they were: Error where they cannot be read. Keys are not checked against each other.
StoredDeck read_stored_deck(std::string_view text, std::int64_t format_version);

/// Prints all keys as a deck that reads back as the same configuration. The origins that there are become comments,
/// with `name` for the deck.
std::string print_deck(Config const& config, std::map<std::string, Origin> const& origins, std::string const& name);

/// The reference of all keys, in Markdown: doc/deck.md.
std::string deck_reference();

} // namespace kozero
