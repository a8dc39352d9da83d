#pragma once
// Which checkpoints of a folder stay when others have come. Private to io.

#include "io/checkpoint.hpp"

#include <cstdint>
#include <filesystem>
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

/// Removes what is outdated in <run>/checkpoints, by what each checkpoint.h5 says; what cannot be read or removed
/// stays, with a warning. Steps after `last` come from an earlier run that went farther; they are not older, so they
/// stay. Error where the folder cannot be looked at.
void remove_outdated(std::filesystem::path const& checkpoints, std::int64_t last, Retention const& retention);

} // namespace kozero::checkpoint
