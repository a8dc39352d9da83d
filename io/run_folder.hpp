#pragma once
#include <string>

namespace kozero {

/// The folder of a run, run.dir, and the names of what is in it. Rank 0's: relative paths count from its working
/// folder, and the others learn the absolute path from it.
///
///     RunFolder folder("runs/quickstart");   // makes the folder, its parents and checkpoints/
///     folder.metrics_file();                 // "/home/…/runs/quickstart/metrics.jsonl"
///
/// InputError when a folder can't be made (a file of that name, no permission) or no file can be made in it.
class RunFolder {
public:
  explicit RunFolder(std::string const& dir);

  std::string const& path() const { return path_; } // absolute
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string metrics_file() const { return path_ + "/metrics.jsonl"; }
  std::string deck_file() const { return path_ + "/deck.yaml"; }

  /// A run that went as far as its first checkpoint is here already.
  bool holds_checkpoints() const;
  void remove_checkpoints() const;
  /// The resolved deck, for people to look at; a resumed run reads its checkpoint's.
  void write_deck(std::string const& text) const;

private:
  std::string path_;
};

} // namespace kozero
