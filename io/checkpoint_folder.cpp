#include "io/checkpoint_folder.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "io/checkpoint_file.hpp"
#include "io/checkpoint_format.hpp"
#include "io/checkpoint_whole.hpp"
#include "io/system_error.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace kozero::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view partial_suffix = ".partial";
constexpr char const* new_latest_name = "latest.new";
constexpr std::string_view replaced_suffix = ".replaced"; // a name that no user gives to a copy
constexpr std::size_t step_digits = 8;                    // or more

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(step_prefix)) return {};
  name.remove_prefix(step_prefix.size());
  std::int64_t step = 0;
  auto const [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  bool const whole = error == std::errc() && end == name.data() + name.size();
  bool const is_own = name.size() == step_digits || (name.size() > step_digits && name.front() != '0');
  if (!whole || !is_own || name.front() == '-') return {};
  return step;
}

bool is_step_with(std::string_view suffix, std::string_view name) {
  return name.ends_with(suffix) && step_of(name.substr(0, name.size() - suffix.size()));
}

std::vector<fs::path> list_with(std::string_view suffix, fs::path const& checkpoints) {
  std::vector<fs::path> folders;
  for (auto const& item : fs::directory_iterator(checkpoints)) {
    if (is_step_with(suffix, item.path().filename().string())) folders.push_back(item.path());
  }
  return folders;
}

bool is_file_of_checkpoint(std::string_view name) {
  return name == info_name || name == whole_name || (name.starts_with("rank-") && name.ends_with(".h5"));
}

fs::path partial_path(fs::path const& complete) { return complete.string() + std::string(partial_suffix); }
fs::path replaced_path(fs::path const& complete) { return complete.string() + std::string(replaced_suffix); }

bool sync_descriptor(int file) {
  int result = 0;
  do {
    result = ::fsync(file);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

/// Turns the standard library's exceptions into ours.
template <class Task>
void with_advice(fs::path const& folder, Task&& task) {
  try {
    task();
  } catch (fs::filesystem_error const& error) {
    throw Error(fmt::format("cannot keep a checkpoint in '{}' ({}: {}); {}", folder.string(), error.path1().string(),
                            error.code().message(), remedy(error.code().value(), write_advice)));
  }
}

} // namespace

std::string rank_file_name(std::int64_t rank) { return fmt::format("rank-{:05}.h5", rank); }

fs::path step_path(fs::path const& checkpoints, std::int64_t step) {
  return checkpoints / fmt::format("{}{:0{}}", step_prefix, step, step_digits);
}

std::vector<std::int64_t> list_steps(fs::path const& checkpoints) try {
  std::vector<std::int64_t> steps;
  if (!fs::exists(checkpoints)) return steps;
  for (auto const& item : fs::directory_iterator(checkpoints)) {
    auto const step = step_of(item.path().filename().string());
    std::error_code error;
    bool const is_complete = step && fs::exists(item.path() / info_name, error);
    if (error && error.value() != ESTALE) { // NFS: another host has just removed it
      throw fs::filesystem_error("cannot look", item.path(), error);
    }
    if (is_complete) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
} catch (fs::filesystem_error const& error) { // a checkpoint that cannot be seen may be there all the same
  throw Error(fmt::format("cannot look for checkpoints in '{}' ({}: {}); {}", checkpoints.string(),
                          error.path1().string(), error.code().message(), remedy(error.code().value(), "try again")));
}

std::vector<fs::path> list_partial(fs::path const& checkpoints) { return list_with(partial_suffix, checkpoints); }

// checkpoint.h5 goes first: half a checkpoint must not look like a whole one.
bool remove_own(fs::path const& folder, GetsOn const& gets_on) {
  if (!fs::is_directory(fs::symlink_status(folder))) {
    if (fs::is_symlink(folder)) fs::remove(folder);
    return !fs::exists(fs::symlink_status(folder));
  }
  std::vector<fs::path> own;
  for (auto const& item : fs::directory_iterator(folder)) {
    bool const is_folder = fs::is_directory(item.symlink_status());
    if (is_file_of_checkpoint(item.path().filename().string()) && !is_folder) own.push_back(item.path());
  }
  std::sort(own.begin(), own.end());
  for (auto const& file : own) {
    gets_on();
    fs::remove(file);
  }
  return fs::is_empty(folder) && fs::remove(folder);
}

bool remove_complete(fs::path const& complete) {
  fs::path const partial = partial_path(complete);
  fs::rename(complete, partial);
  if (remove_own(partial)) return true;
  fs::rename(partial, complete); // the others' files keep their place
  return false;
}

bool set_aside(fs::path const& complete) {
  for (auto const& item : fs::directory_iterator(complete)) {
    if (!is_file_of_checkpoint(item.path().filename().string())) return false;
  }
  fs::path const partial = partial_path(complete);
  if (fs::exists(fs::symlink_status(partial))) remove_own(partial);
  fs::rename(complete, partial);
  return true;
}

void take_back_replaced(fs::path const& checkpoints) {
  for (auto const& replaced : list_with(replaced_suffix, checkpoints)) {
    fs::path const complete = replaced.parent_path() / replaced.stem();
    if (fs::exists(complete / info_name)) {
      remove_own(replaced);
    } else if (!fs::exists(fs::symlink_status(complete))) {
      fs::rename(replaced, complete);
    } else {
      log::warn("'{}' stays (what has its place is no checkpoint); look at both, and remove one by hand",
                replaced.string());
    }
  }
}

void remove_leftovers(fs::path const& checkpoints, fs::path const& but, GetsOn const& gets_on) {
  std::vector<fs::path> leftovers;
  try {
    leftovers = list_partial(checkpoints);
    std::erase(leftovers, but);
    if (!leftovers.empty()) sync_to_disk(checkpoints);
  } catch (std::exception const& error) {
    log::warn("what is no checkpoint any more stays: {}", error.what());
    return;
  }
  for (auto const& folder : leftovers) {
    try {
      remove_own(folder, gets_on);
    } catch (fs::filesystem_error const& error) {
      log::warn("'{}' is no checkpoint any more and cannot be removed ({}); see who may write there",
                error.path1().string(), error.code().message());
    }
  }
}

void move_latest(fs::path const& complete) {
  fs::path const checkpoints = complete.parent_path();
  fs::path const next = checkpoints / new_latest_name;
  fs::remove(next);
  fs::create_directory_symlink(complete.filename(), next);
  fs::rename(next, checkpoints / latest_name);
}

std::vector<std::string> remove_all_of(fs::path const& checkpoints) {
  std::vector<fs::path> items;
  for (auto const& item : fs::directory_iterator(checkpoints)) items.push_back(item.path());
  std::sort(items.begin(), items.end());
  std::vector<std::string> others;
  for (auto const& path : items) {
    std::string const name = path.filename().string();
    if (step_of(name) || is_step_with(partial_suffix, name) || is_step_with(replaced_suffix, name)) {
      remove_own(path);
    } else if (fs::is_symlink(path) && (name == latest_name || name == new_latest_name)) {
      fs::remove(path);
    }
    if (!fs::exists(fs::symlink_status(path))) continue;
    others.push_back(fs::is_directory(fs::symlink_status(path)) ? name + "/" : name);
  }
  return others;
}

void sync_to_disk(fs::path const& path) {
  int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool synced = file >= 0 && sync_descriptor(file);
  // File systems that cannot do this for folders say EINVAL.
  synced = synced || (file >= 0 && errno == EINVAL);
  int const cause = errno;
  if (file >= 0) ::close(file);
  KOZERO_REQUIRE(synced, "cannot force '{}' to disk ({}); {}", path.string(), std::strerror(cause),
                 remedy(cause, write_advice));
}

NewFolder::NewFolder(fs::path checkpoints, std::int64_t step)
    : checkpoints_(std::move(checkpoints)), complete_(step_path(checkpoints_, step)),
      partial_(partial_path(complete_)) {}

void NewFolder::start() {
  with_advice(checkpoints_, [&] {
    fs::create_directory(checkpoints_); // in the run's folder, which is not made anew where it was moved meanwhile
    take_back_replaced(checkpoints_);
    if (fs::exists(fs::symlink_status(partial_))) {
      sync_to_disk(checkpoints_); // else a failure of the system could give it back the name that it had
      remove_own(partial_);
    }
    fs::create_directory(partial_);
  });
}

// Once it has its name the checkpoint is there, whatever fails then.
NewFolder::Name NewFolder::publish() {
  Name name = Name::on_disk;
  with_advice(checkpoints_, [&] {
    sync_to_disk(partial_);
    rename_to_complete();
  });
  try {
    sync_to_disk(checkpoints_);
    with_advice(checkpoints_, [&] { set_replaced_aside(); });
  } catch (Error const& error) {
    name = Name::in_memory;
    log::warn("'{}' is saved, but may not be there after a failure of the system, so that older ones stay: {}",
              complete_.string(), error.what());
  }
  try {
    move_latest(complete_);
    sync_to_disk(checkpoints_);
  } catch (fs::filesystem_error const& error) { // readers look for the newest
    log::warn("'{}' is saved, but the link '{}' cannot be moved to it ({}); move or remove what stands there",
              complete_.string(), (checkpoints_ / latest_name).string(), error.code().message());
  } catch (Error const& error) {
    log::warn("'{}' is saved, but the link to it may not outlive a failure of the system: {}", complete_.string(),
              error.what());
  }
  return name;
}

void NewFolder::discard() noexcept {
  try {
    remove_own(partial_);
  } catch (std::exception const&) { // the next save tries again
  }
}

void NewFolder::rename_to_complete() {
  if (!fs::exists(fs::symlink_status(complete_))) {
    fs::rename(partial_, complete_);
    return;
  }
  // A checkpoint of the same number: the two change places at once where the system can do that.
#ifdef RENAME_EXCHANGE
  if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, complete_.c_str(), RENAME_EXCHANGE) == 0) return;
#endif
  fs::path const replaced = replaced_path(complete_); // which take_back_replaced() looks for after a kill
  remove_own(replaced);
  fs::rename(complete_, replaced);
  try {
    fs::rename(partial_, complete_);
  } catch (fs::filesystem_error const&) {
    std::error_code not_possible;
    fs::rename(replaced, complete_, not_possible);
    throw;
  }
}

/// What had this number before has one of two names now, and takes the first.
void NewFolder::set_replaced_aside() {
  fs::path const replaced = replaced_path(complete_);
  if (fs::exists(fs::symlink_status(replaced))) fs::rename(replaced, partial_);
}

} // namespace kozero::checkpoint
