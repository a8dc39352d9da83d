#pragma once
#include "io/file_descriptor.hpp"
#include "io/run_lock.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace kozero {

/// The folder of a run, run.dir, and the names of what is in it. Rank 0's: relative paths count from its working
/// folder, and the others learn the absolute path from it. While the object lives, no other run may have the folder.
///
///     RunFolder folder("runs/quickstart");   // makes the folder, its parents and checkpoints/, and locks it
///     folder.metrics_file();                 // "/home/…/runs/quickstart/metrics.jsonl"
///
/// InputError when a folder can't be made (a file of that name, no permission), no file can be made in it, or another
/// run has it.
class RunFolder {
public:
  /// One that a process of another host has is waited for as long as `patience` lasts.
  explicit RunFolder(std::string const& dir, std::chrono::milliseconds patience = {});

  std::string const& path() const { return path_; } // absolute
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string metrics_file() const { return path_ + "/metrics.jsonl"; }
  std::string deck_file() const { return path_ + "/deck.yaml"; }

  /// Where the file system has no locks, another run may have it too.
  bool is_locked() const { return lock_->is_held(); }
  /// A run that went as far as its first checkpoint is here already.
  bool holds_checkpoints() const;
  /// Those, the metrics that were kept for some of them and TensorBoard's event files; nothing that kozero did not
  /// write. What stays is named.
  void remove_checkpoints() const;
  /// The resolved deck, for people to look at; a resumed run reads its checkpoint's.
  void write_deck(std::string const& text) const;

  enum class Found { in_place, moved, made_anew };
  /// Looks whether the folder is where it was; says it once if not. One that was moved is followed; one that was
  /// removed is made anew, empty, in its place. InputError when another run has that place. Cheap.
  Found look();

private:
  void take(std::chrono::milliseconds patience);
  std::optional<std::string> present_path() const;

  std::string path_;
  FileDescriptor folder_;
  std::optional<RunLock> lock_;
};

} // namespace kozero
