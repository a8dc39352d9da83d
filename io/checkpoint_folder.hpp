#pragma once
// The folders of checkpoints on disk: their names, and the moves that make a finished one appear at once. Private to
// io.

#include "io/checkpoint.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
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

/// Called before each file of what takes long: the work gets on. Where it throws, no more is done.
using GetsOn = std::function<void()>;

/// What saves that did not end have left. Throws std::filesystem's errors, as the next five do.
std::vector<std::filesystem::path> list_partial(std::filesystem::path const& checkpoints);

/// Removes a checkpoint folder with what kozero wrote in it, or the link that stands for one; a folder with more in it
/// stays, with that alone. Whether it is gone.
bool remove_own(
    std::filesystem::path const& folder, GetsOn const& gets_on = [] {});
/// The same of a complete one, which has no name of a checkpoint meanwhile.
bool remove_complete(std::filesystem::path const& complete);
/// Gives a complete one the name of one that is not, so that its files go with the next remove_leftovers(). One with
/// more in it is left as it is: false.
bool set_aside(std::filesystem::path const& complete);
/// Where a kill came between two renames, gives a checkpoint its name back that was about to be replaced; of one that
/// was replaced, removes the rest. For whoever holds the run's folder.
void take_back_replaced(std::filesystem::path const& checkpoints);
/// Removes the files of saves that did not end, and of what was set aside, but of one. That takes long. First their
/// names are forced to disk, else a failure of the system could give them back those that they had. What cannot be
/// removed stays, with a warning; throws what `gets_on` throws.
void remove_leftovers(
    std::filesystem::path const& checkpoints, std::filesystem::path const& but = {}, GetsOn const& gets_on = [] {});
/// The link `latest` leads to that checkpoint then.
void move_latest(std::filesystem::path const& complete);

/// Removes all checkpoints and `latest` from <run>/checkpoints. What kozero did not write stays and comes back, by its
/// path there. Throws std::filesystem's errors.
std::vector<std::string> remove_all_of(std::filesystem::path const& checkpoints);

/// Forces a file's data, or a folder's names, to disk.
void sync_to_disk(std::filesystem::path const& path);

/// One checkpoint in the making. One process calls these; they throw Error.
///
///     NewFolder folder(run / "checkpoints", 100);
///     folder.start();     // …/step-00000100.partial, empty
///     …                   // fill folder.partial()
///     folder.publish();   // …/step-00000100, and `latest`
class NewFolder {
public:
  NewFolder(std::filesystem::path checkpoints, std::int64_t step);

  std::filesystem::path const& partial() const { return partial_; }
  std::filesystem::path const& complete() const { return complete_; }

  void start();
  /// Whether the disk has the checkpoint's name: where it may not, nothing else may be removed.
  enum class Name { on_disk, in_memory };
  /// An Error says that it has not its name; what goes wrong after that is a warning.
  Name publish();
  /// Removes what start() made, as far as that is possible.
  void discard() noexcept;

private:
  void rename_to_complete();
  void set_replaced_aside();

  std::filesystem::path checkpoints_;
  std::filesystem::path complete_;
  std::filesystem::path partial_;
};

} // namespace kozero::checkpoint
