#pragma once
// The folders of checkpoints on disk: their names, and the moves that make a finished one appear at once. Private to
// io.

#include "io/checkpoint.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kozero::checkpoint {

/// In a checkpoint folder; a folder without it is none.
inline constexpr char const* info_name = "checkpoint.h5";
inline constexpr char const* latest_name = "latest";

std::string rank_file_name(std::int64_t rank);

/// The numbers of the complete checkpoints in <run>/checkpoints, ascending; empty if there is no such folder. Error
/// where that cannot be seen.
std::vector<std::int64_t> list_steps(std::filesystem::path const& checkpoints);
std::filesystem::path step_path(std::filesystem::path const& checkpoints, std::int64_t step);

/// What saves that did not end have left. Throws std::filesystem's errors, as the next two do.
std::vector<std::filesystem::path> list_partial(std::filesystem::path const& checkpoints);

/// Removes a checkpoint folder with what kozero wrote in it, or the link that stands for one; a folder with more in it
/// stays, with that alone.
void remove_own(std::filesystem::path const& folder);
/// The same of a complete one, whose name it takes first.
void remove_complete(std::filesystem::path const& complete);

/// Of `steps`, complete checkpoints, the newest at the end: those that are not to stay.
std::vector<std::int64_t> outdated(std::filesystem::path const& checkpoints, std::vector<std::int64_t> const& steps,
                                   Retention const& retention);

/// Removes all checkpoints and `latest` from <run>/checkpoints. What kozero did not write stays and comes back, by its
/// path there. Throws std::filesystem's errors.
std::vector<std::string> remove_all_of(std::filesystem::path const& checkpoints);

/// Forces a file's data, or a folder's names, to disk.
void sync_to_disk(std::filesystem::path const& path);

/// One checkpoint in the making. One process calls these; they throw Error.
///
///     NewFolder folder(run / "checkpoints", 100);
///     folder.start();            // …/step-00000100.partial, empty; leftovers of killed runs are gone
///     …                          // fill folder.partial()
///     folder.publish({3});       // …/step-00000100, `latest`, old ones removed
class NewFolder {
public:
  NewFolder(std::filesystem::path checkpoints, std::int64_t step);

  std::filesystem::path const& partial() const { return partial_; }
  std::filesystem::path const& complete() const { return complete_; }

  void start();
  void publish(Retention const& retention);
  /// Removes what start() made, as far as that is possible.
  void discard() noexcept;

private:
  void rename_to_complete();
  void move_latest();
  void remove_old(Retention const& retention);

  std::filesystem::path checkpoints_;
  std::int64_t step_;
  std::filesystem::path complete_;
  std::filesystem::path partial_;
};

} // namespace kozero::checkpoint
