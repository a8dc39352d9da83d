#pragma once
#include "core/profile.hpp"

#include <filesystem>

namespace kozero {

/// <run>/profile/rank-000.json: the spans of a profile as a Chrome trace, for chrome://tracing and Perfetto.
/// doc/profile.md says what is in it. An older file is replaced. Error when it cannot be written.
void write_profile(std::filesystem::path const& run_folder, int rank, Profile const& profile);

} // namespace kozero
