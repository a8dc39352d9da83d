#pragma once
// Whether a configuration makes sense: every value within its limits, and one key against another. No file is looked
// at.

#include "config/config.hpp"
#include "config/finding.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kozero {

struct Findings {
  std::vector<Finding> faults;   // the run must not start
  std::vector<Finding> warnings; // it may, but is probably not what was meant
};

/// Nothing is found about the keys in `unread`: their values are not the deck's.
Findings check(Config const& config, std::set<std::string> const& unread = {});

/// The fraction that data.validation is, if it is one; else it names a file.
std::optional<double> validation_fraction(DataConfig const& data);

/// The batch of an update on so many ranks: global = micro × accumulate × ranks.
struct ResolvedBatch {
  std::int64_t micro;
  std::int64_t accumulate;
  std::int64_t global;
  friend bool operator==(ResolvedBatch const&, ResolvedBatch const&) = default;
};

/// InputError when the ranks can't share batch.global evenly, or the batch is not one that check() accepts.
ResolvedBatch resolve_batch(BatchConfig const& batch, std::int64_t ranks);

/// InputError when the deck asks for what so many ranks can't keep.
void check_ranks(Config const& config, std::int64_t ranks);

} // namespace kozero
