#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kozero {

/// The model family that a deck of that YAML text is for, with its overrides "key.path=value": it says what keys there
/// are, so it is looked for before they are read. The last word that names a family, else the default; faults are left
/// to the reading of the keys.
std::string family_of_deck(std::string_view text, std::vector<std::string> const& overrides);

} // namespace kozero
