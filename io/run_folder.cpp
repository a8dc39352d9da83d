#include "io/run_folder.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/event_file.hpp"
#include "io/metrics_lineage.hpp"
#include "io/plain_file.hpp"
#include "io/system_error.hpp"

#include <fmt/ranges.h>

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace kozero {

namespace {

constexpr char const* advice = "correct run.dir or its permissions";

[[noreturn]] void refuse(std::string const& path, std::string const& what, std::string const& why) {
  throw InputError(fmt::format("run folder '{}' {} ({}); {}", path, what, why, advice));
}

/// A disk that is full or fails is not mended by another path.
[[noreturn]] void refuse(std::string const& path, std::string const& what, std::error_code cause) {
  bool const is_of_path = cause == std::errc::no_such_file_or_directory || cause == std::errc::permission_denied;
  throw InputError(fmt::format("run folder '{}' {} ({}); {}", path, what, cause.message(),
                               is_of_path ? advice : remedy(cause.value(), advice)));
}

std::error_code last_error() { return {errno, std::generic_category()}; }

/// The part of the path that is in the way, being no folder; empty when there is none.
std::filesystem::path obstacle(std::filesystem::path const& path) {
  std::filesystem::path part;
  for (auto const& name : path) {
    part /= name;
    std::error_code error;
    auto const status = std::filesystem::status(part, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) return part;
  }
  return {};
}

/// Where its parent may be opened: what is saved in a folder is worth nothing without its name.
void force_name_to_disk(std::filesystem::path const& folder) {
  try {
    checkpoint::sync_to_disk(folder.parent_path());
  } catch (Error const&) { // a failure of the system is all that it is for
  }
}

void make_folder(std::string const& path) {
  if (auto const file = obstacle(path); !file.empty()) {
    refuse(path, "cannot be made", fmt::format("'{}' is a file", file.string()));
  }
  std::error_code error;
  bool const is_new = std::filesystem::create_directories(path, error);
  if (error) refuse(path, "cannot be made", error);
  if (is_new) force_name_to_disk(path);
}

/// Permission bits do not tell (root, quotas, read-only mounts), so make a file and remove it.
void try_to_write(std::string const& path) {
  std::string probe = path + "/.kozero-XXXXXX";
  int const file = ::mkstemp(probe.data());
  if (file < 0) refuse(path, "cannot be written to", last_error());
  ::close(file);
  ::unlink(probe.c_str());
}

} // namespace

RunFolder::RunFolder(std::string const& dir, std::chrono::milliseconds patience) {
  if (dir.empty()) throw InputError("run.dir is empty (a run writes its files there); name a folder");
  path_ = std::filesystem::absolute(dir).string(); // links stay: what they lead to may differ from host to host
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  take(patience);
}

/// The lock comes before all that is looked at or written here.
void RunFolder::take(std::chrono::milliseconds patience) {
  make_folder(path_);
  try_to_write(path_);
  lock_.reset();
  lock_.emplace(path_, patience);
  folder_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open()) refuse(path_, "cannot be opened", last_error());
  make_folder(checkpoints());
  try_to_write(checkpoints());
  try {
    checkpoint::take_back_replaced(checkpoints());
  } catch (std::filesystem::filesystem_error const& error) {
    refuse(path_, "has a checkpoint whose replacement was cut short", error.code());
  }
}

bool RunFolder::holds_checkpoints() const { return !checkpoint::list_steps(checkpoints()).empty(); }

void RunFolder::remove_checkpoints() const {
  std::vector<std::string> others;
  try {
    others = checkpoint::remove_all_of(checkpoints());
    for (auto const& file : kept_metrics_files(metrics_file())) std::filesystem::remove(file);
    for (auto const& file : event_files(path_)) std::filesystem::remove(file);
  } catch (std::filesystem::filesystem_error const& error) {
    refuse(path_, "keeps its old checkpoints", error.code());
  }
  if (!others.empty()) {
    log::warn("'{}' keeps what kozero did not write: {}", checkpoints(), fmt::join(others, ", "));
  }
}

void RunFolder::write_deck(std::string const& text) const { replace_file(deck_file(), text); }

RunFolder::Found RunFolder::look() {
  if (is_at(folder_, path_)) {
    if (!lock_->is_in(folder_)) {
      log::warn("'{}/lock' was removed while the run goes on; it is made anew", path_);
      lock_.reset();
      lock_.emplace(path_);
    }
    return Found::in_place;
  }
  if (auto const present = present_path()) {
    log::warn("run folder '{}' is '{}' now; metrics and checkpoints of this run go on there", path_, *present);
    path_ = *present;
    return Found::moved;
  }
  log::warn("run folder '{}' was removed while the run goes on; it is made anew, with the metrics so far, and the next "
            "checkpoint is saved there",
            path_);
  take({});
  if (holds_checkpoints()) refuse(path_, "was removed, and another one is in its place", "it has checkpoints");
  return Found::made_anew;
}

/// Where the system knows the folder; nothing where it was removed, or moved by another host.
std::optional<std::string> RunFolder::present_path() const {
  std::error_code unknown;
  std::string const path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder_.get()), unknown);
  if (unknown || !is_at(folder_, path)) return {};
  return path;
}

} // namespace kozero
