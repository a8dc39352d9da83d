#pragma once
#include "comm/group.hpp"
#include "config/config.hpp"
#include "core/ledger.hpp"
#include "data/batch_shape.hpp"
#include "io/corpus.hpp"

#include <string>

namespace kozero {

struct SelftestInput {
  Config config; // a deck without faults; its stage, offload and recompute do not matter
  Corpus corpus;
  BatchShape batch;
  std::int64_t updates = 4; // of each run; a delay shows from the third on
};

struct SelftestReport {
  bool passed = false;
  std::string text; // a table of all runs, and the verdict
};

/// Trains the deck's model from its first batch in every combination of selftest_cases(), one after another in the
/// memory that the ledger has left, and says which are equal and which should be but are not. Nothing is written.
/// A combination that the ledger's limits forbid, on any rank, is left out and told. Collective; every rank gets the
/// report.
SelftestReport selftest(SelftestInput const& input, Group const& group, Ledger& ledger);

} // namespace kozero
