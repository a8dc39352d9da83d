#include "core/log.hpp"
#include "io/checkpoint.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_order.hpp"

namespace kozero {

namespace fs = std::filesystem;

namespace {

constexpr char const* naming_advice =
    "give the folder of a run (with checkpoints/ in it) or of a checkpoint (step-00000100)";

/// The folder of checkpoints that belongs to a folder: itself, or the one in it.
fs::path checkpoints_in(fs::path const& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "checkpoints", ignored) ? folder / "checkpoints" : folder;
}

bool is_checkpoint(fs::path const& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / checkpoint::info_name, ignored);
}

/// The one that was saved last, whatever the link says, and a word where it says otherwise.
std::optional<fs::path> newest_in(fs::path const& checkpoints) {
  auto const saved = checkpoint::in_order_of_saving(checkpoints);
  if (saved.empty()) return {};
  fs::path const newest = fs::canonical(checkpoint::step_path(checkpoints, saved.back().step));
  for (auto const& other : saved) {
    if (other.generation || other.is_linked) continue;
    log::warn("'{}' is passed over (its {} cannot be read)", checkpoint::step_path(checkpoints, other.step).string(),
              checkpoint::info_name);
  }
  if (!saved.back().is_linked) {
    log::warn("the link 'latest' in '{}' does not lead to the checkpoint that was saved last (a save was cut short, or "
              "it was moved by hand); taking '{}'",
              checkpoints.string(), newest.string());
  }
  return newest;
}

bool is_empty_or_partial(fs::path const& checkpoints) {
  std::error_code ignored;
  for (auto const& item : fs::directory_iterator(checkpoints, ignored)) {
    if (item.path().extension() != ".partial" && item.is_directory(ignored)) return false;
  }
  return true;
}

} // namespace

fs::path checkpoint_path(fs::path const& run_dir, std::int64_t updates_applied) {
  return checkpoint::step_path(run_dir / "checkpoints", updates_applied);
}

std::int64_t count_checkpoints(fs::path const& run_dir) {
  return std::ssize(checkpoint::list_steps(run_dir / "checkpoints"));
}

fs::path resolve_checkpoint(fs::path const& path) {
  std::error_code ignored;
  KOZERO_REQUIRE(fs::exists(path, ignored), "no checkpoint at '{}' (no such file or folder); {}", path.string(),
                 naming_advice);
  KOZERO_REQUIRE(fs::is_directory(path, ignored), "no checkpoint at '{}' (a file, not a folder); {}", path.string(),
                 naming_advice);
  if (is_checkpoint(path)) return fs::canonical(path);

  fs::path const checkpoints = checkpoints_in(path);
  if (auto const newest = newest_in(checkpoints)) return *newest;
  bool const is_run = checkpoints != path;
  KOZERO_REQUIRE(!(is_run && is_empty_or_partial(checkpoints)),
                 "no checkpoint in '{}' (at most partial ones of a save that did not end); start the run anew or give "
                 "another one",
                 checkpoints.string());
  throw Error(
      fmt::format("'{}' is not a checkpoint of kozero (neither {} nor checkpoints/ with complete steps in it); {}",
                  path.string(), checkpoint::info_name, naming_advice));
}

bool is_latest_checkpoint(fs::path const& checkpoint, fs::path const& run_dir, Ranks& ranks) {
  std::error_code not_there;
  std::string answer =
      fs::equivalent(checkpoint, run_dir / "checkpoints" / checkpoint::latest_name, not_there) ? "yes" : "no";
  ranks.broadcast(answer, 0);
  return answer == "yes";
}

} // namespace kozero
