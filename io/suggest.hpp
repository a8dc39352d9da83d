#pragma once
#include <string>
#include <vector>

namespace kozero {

/// The candidate that `word` is most likely a misspelling of; empty: none is near.
std::string nearest_word(std::string const& word, std::vector<std::string> const& candidates);

} // namespace kozero
