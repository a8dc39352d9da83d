#pragma once
// In which order the checkpoints of a folder were saved. Private to io.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace kozero::checkpoint {

/// A complete checkpoint of a folder.
struct Saved {
  std::int64_t step = 0;
  /// Its number among the saves of the folder, from 1 and rising; 0 in files that do not say it, nothing where
  /// checkpoint.h5 cannot be read.
  std::optional<std::int64_t> generation = {};
  bool is_linked = false; // `latest` leads to it
};

/// Those of <run>/checkpoints, the one that was saved last at the end. Their own numbers decide: the link `latest`
/// moves after a checkpoint is there, times of files change when they are copied, and a run that went back has steps
/// ahead of it. Where none has a number, the linked one is the last, else the highest step. Those that cannot be read
/// come first, but a linked one comes last where no other has a higher step: it is what the run was at.
std::vector<Saved> in_order_of_saving(std::filesystem::path const& checkpoints);

/// For the next save: above those of all that are there. Where one of them cannot be read now, and perhaps can later,
/// it is above the milliseconds since 1970: fewer saves have ever been counted, and those that such a moment has
/// numbered were made before.
std::int64_t next_generation(std::filesystem::path const& checkpoints);

} // namespace kozero::checkpoint
