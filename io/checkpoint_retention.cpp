#include "io/checkpoint_retention.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_losses.hpp"
#include "io/checkpoint_order.hpp"

#include <algorithm>
#include <utility>

namespace kozero::checkpoint {

namespace fs = std::filesystem;

namespace {

/// Nothing where that cannot be told: it might be the best.
std::optional<CheckpointInfo> info_of(fs::path const& checkpoint) {
  try {
    return read_info(checkpoint / info_name);
  } catch (Error const& error) {
    log::warn("the checkpoint '{}' stays ({}); look at it, and remove it by hand where it is lost", checkpoint.string(),
              error.what());
    return {};
  }
}

void leave_out(fs::path const& checkpoint) {
  try {
    if (!set_aside(checkpoint)) {
      log::warn("'{}' stays, with files that kozero did not write; remove it by hand", checkpoint.string());
    }
  } catch (fs::filesystem_error const& error) {
    log::warn("cannot remove the old checkpoint '{}' ({}); remove it by hand", checkpoint.string(),
              error.code().message());
  }
}

} // namespace

std::vector<std::int64_t> outdated(std::span<Candidate const> saved, Retention const& retention) {
  std::vector<std::pair<double, std::int64_t>> best; // loss and step
  for (Candidate const& candidate : saved) {
    if (candidate.held_out_loss) best.emplace_back(*candidate.held_out_loss, candidate.step);
  }
  std::ranges::sort(best);
  best.resize(std::min(best.size(), static_cast<std::size_t>(retention.best)));
  std::vector<std::int64_t> old;
  for (Candidate const& candidate : saved.first(saved.size() - std::min<std::size_t>(saved.size(), retention.newest))) {
    if (!std::ranges::count(best, candidate.step, [](auto const& loss_and_step) { return loss_and_step.second; })) {
      old.push_back(candidate.step);
    }
  }
  return old;
}

std::vector<std::int64_t> outdated_in(fs::path const& checkpoints, Retention const& retention, std::int64_t last) {
  auto saved = in_order_of_saving(checkpoints);
  std::erase_if(saved, [&](Saved const& one) { return one.step > last; });
  if (std::ssize(saved) <= retention.newest) return {};
  CheckpointLosses losses(checkpoints.parent_path());
  std::vector<Candidate> candidates;
  for (Saved const& one : saved) {
    auto const info = info_of(step_path(checkpoints, one.step));
    if (info) candidates.push_back({one.step, retention.best > 0 ? losses.held_out(*info) : std::nullopt});
  }
  return outdated(candidates, retention);
}

void set_outdated_aside(fs::path const& checkpoints, Retention const& retention, std::int64_t last) {
  for (std::int64_t const step : outdated_in(checkpoints, retention, last)) leave_out(step_path(checkpoints, step));
}

} // namespace kozero::checkpoint
