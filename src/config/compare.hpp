#pragma once
#include "config/config.hpp"
#include "config/schema.hpp"

#include <string>
#include <vector>

namespace kozero {

struct Difference {
  std::string key;
  std::string before, now; // as a deck shows them
  Severity severity;
};

/// What a run that resumes a checkpoint has otherwise than the run that wrote it, in the deck's order.
std::vector<Difference> compare_decks(Config const& checkpoint, Config const& run);

} // namespace kozero
