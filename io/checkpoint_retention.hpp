#pragma once
// Which checkpoints of a folder stay when others have come. Private to io.

#include "io/checkpoint.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace kozero::checkpoint {

/// A complete checkpoint that may have to go.
struct Candidate {
  std::int64_t step = 0;
  std::optional<double> held_out_loss = {};
};

/// Of `saved`, in the order of saving: those that are not to stay.
std::vector<std::int64_t> outdated(std::span<Candidate const> saved, Retention const& retention);

/// Those of <run>/checkpoints that are not to stay, by the losses that CheckpointLosses tells; what cannot be read
/// stays, with a warning. Steps after `last` come from an earlier run that went farther; they are not older, so they
/// stay. Error where the folder cannot be looked at.
std::vector<std::int64_t> outdated_in(std::filesystem::path const& checkpoints, Retention const& retention,
                                      std::int64_t last = std::numeric_limits<std::int64_t>::max());

/// Takes their names from these; remove_leftovers() removes the files. What that cannot be done to stays, with a
/// warning.
void set_outdated_aside(std::filesystem::path const& checkpoints, Retention const& retention, std::int64_t last);

} // namespace kozero::checkpoint
