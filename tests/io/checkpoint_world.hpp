#pragma once
// Ranks that save checkpoints in a folder that they share.
#include "comm/ranks.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_sample.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kozero::test {

/// All ranks and a run folder that they share, which goes at the end.
class World {
public:
  World() : all_(make_world_ranks()) {
    if (all_->rank() == 0) run_ = folder_.emplace().path();
    all_->broadcast(run_, 0);
  }
  ~World() {
    if (std::uncaught_exceptions() == 0) all_->barrier(); // after a failed check this rank leaves alone
  }

  Ranks& all() { return *all_; }
  int rank() const { return all_->rank(); }
  int ranks() const { return all_->size(); }
  std::filesystem::path run() const { return run_; }
  std::filesystem::path checkpoints() const { return run() / "checkpoints"; }
  SampleState own(std::vector<SampleTensor> const& tensors) const {
    return SampleState::part(tensors, rank(), ranks());
  }
  std::filesystem::path save(SampleState& state, std::int64_t updates, Retention const& retention = {1}) {
    return save_checkpoint(run_, sample_info(updates), state.entries(), retention, *all_);
  }
  /// How a message begins that tells what failed on a rank.
  std::string said_by(int rank) const { return ranks() > 1 ? "rank " + std::to_string(rank) + " on host " : ""; }
  /// Runs on rank 0 while the others wait.
  template <class Task>
  void on_first(Task&& task) {
    all_->barrier();
    if (rank() == 0) task();
    all_->barrier();
  }

private:
  std::unique_ptr<Ranks> all_;
  std::optional<TemporaryFolder> folder_;
  std::string run_;
};

inline std::vector<std::string> names_in(std::filesystem::path const& folder) {
  std::vector<std::string> names;
  for (auto const& item : std::filesystem::directory_iterator(folder)) names.push_back(item.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace kozero::test
