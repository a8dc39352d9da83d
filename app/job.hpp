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

/// Rank 0 reads the deck, and all ranks parse the same bytes. Errors on any rank are thrown on all. Collective.
Deck read_deck_of_job(std::string const& path, std::vector<std::string> const& overrides, Ranks& ranks);

/// All ranks open the data, which must be the same; the deck's memory limits become the ledger's; hosts are asked
/// whether they have the memory. Errors as above. Collective.
Job open_job(Deck deck, Ranks& ranks, Ledger& ledger);

} // namespace kozero
