#pragma once
// What a deck may say: one line a key, in schema.cpp, and those of the model's family. Reading, printing, checking,
// comparing and the reference page all come from that table.

#include "config/config.hpp"
#include "config/key.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kozero {

/// All keys of `config`, in the deck's order. They point into it: it must outlive them.
std::vector<Key> keys_of(Config& config);

struct Section {
  std::string_view name;
  std::string_view help;
};
std::vector<Section> sections();

/// The value of the key with that path, which must be one, as a deck shows it.
std::string text_of(Config config, std::string const& path);

} // namespace kozero
