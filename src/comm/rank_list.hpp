#pragma once
#include <string>
#include <vector>

namespace kozero {

/// "rank 3", "ranks 0, 2-7": of ranks in ascending order.
std::string name_ranks(std::vector<int> const& ranks);

} // namespace kozero
