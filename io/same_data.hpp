#pragma once
#include "comm/ranks.hpp"
#include "io/corpus.hpp"

namespace kozero {

/// Ranks may read copies of a file, each its host's. Where those of a rank are not rank 0's, all ranks throw an error
/// that names both with host and path. Collective.
void require_same_data(Corpus const& corpus, Ranks& ranks);

} // namespace kozero
