#pragma once
#include "io/checkpoint.hpp"

#include <functional>

namespace kozero {

/// A checkpoint on its way to disk, in three steps, so that the long one may be another thread's:
///
///     CheckpointSave save(run_dir, info, entries, retention, ranks);   // collective
///     save.write([] { heartbeat().beat(); });                         // this rank alone; any thread
///     fs::path const folder = save.commit([&] { return state_hash; }); // collective
///
/// What save_checkpoint says of arguments and errors holds here, but the state's hash may come at the end. The memory
/// of the entries must stay as it is until write() has returned.
class CheckpointSave {
public:
  CheckpointSave(std::filesystem::path const& run_dir, CheckpointInfo const& info, std::span<StateEntry const> entries,
                 Retention const& retention, Ranks& ranks);
  ~CheckpointSave();
  CheckpointSave(CheckpointSave const&) = delete;
  CheckpointSave& operator=(CheckpointSave const&) = delete;

  /// Writes this rank's files and forces them to disk, then does `also`. What goes wrong is commit()'s to tell.
  /// `gets_on` is called now and then; where it throws, no more is written.
  void write(
      std::function<void()> const& gets_on, std::function<void()> const& also = [] {}) noexcept;
  /// Gives the checkpoint its name if all ranks have written it, else removes what they wrote and throws. The hash is
  /// asked for, on all ranks together, where they have.
  std::filesystem::path commit(std::function<std::string()> const& state_hash);

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Removes the files of former checkpoints from <run>/checkpoints, which commit() only takes their names from: that
/// takes long, and all ranks wait there. The next save does it too, while it writes. One process, while nothing is
/// saved. What cannot be removed stays, with a warning.
void remove_leftovers(std::filesystem::path const& checkpoints);

} // namespace kozero
