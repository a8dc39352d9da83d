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

private:
  std::string path_;
};

} // namespace kozero
