#pragma once
#include "comm/collectives.hpp"
#include "comm/ranks.hpp"

namespace kozero {

/// The ranks of a group: to agree, and to move data. Whoever made the two keeps them.
struct Group {
  Ranks& ranks;
  Collectives& collectives;

  int rank() const { return ranks.rank(); }
  int size() const { return ranks.size(); }
};

} // namespace kozero
