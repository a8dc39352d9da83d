#pragma once
#include "comm/ranks.hpp"
#include "core/ledger.hpp"
#include "data/batch_shape.hpp"
#include "io/corpus.hpp"
#include "io/deck.hpp"

#include <string>
#include <vector>

namespace kozero {

/// What a command that trains begins with, on every rank.
struct Job {
  Deck deck;
  BatchShape batch;
  Corpus corpus;
};

/// Rank 0 reads the deck, all ranks parse the same bytes and open the data; the deck's memory limits become the
/// ledger's. Errors on any rank are thrown on all. Collective.
Job read_job(std::string const& deck, std::vector<std::string> const& overrides, Ranks& ranks, Ledger& ledger);

} // namespace kozero
