#include "io/run_lock.hpp"

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/heartbeat.hpp"
#include "core/log.hpp"
#include "core/signal_listener.hpp"
#include "io/json.hpp"
#include "io/plain_file.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>

namespace kozero {

namespace {

constexpr char const* name = "lock";

std::string host() {
  std::array<char, 256> text = {};
  return ::gethostname(text.data(), text.size() - 1) == 0 ? text.data() : "?";
}

/// What the scheduler calls this job; empty where there is none.
std::string job() {
  for (char const* const variable : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}) {
    if (char const* const value = std::getenv(variable)) return value;
  }
  return "";
}

std::string now() {
  std::time_t const seconds = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string self() {
  Json owner = {{"host", host()}, {"pid", ::getpid()}, {"since", now()}};
  if (std::string const id = job(); !id.empty()) owner["job"] = id;
  return owner.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

struct Owner {
  std::string host;
  std::string words;
};

/// Who a lock's text says that it is; nobody where it says nothing.
std::optional<Owner> described(std::string const& text) {
  Json const owner = Json::parse(text, nullptr, false);
  auto const word = [&](char const* key) {
    return owner.is_object() && owner.contains(key) && owner[key].is_string() ? owner[key].get<std::string>() : "";
  };
  if (word("host").empty() || !owner.contains("pid") || !owner["pid"].is_number_integer()) return {};
  std::string const id = word("job");
  return Owner{word("host"), fmt::format("process {} on host {}{}, since {}", owner["pid"].get<std::int64_t>(),
                                         word("host"), id.empty() ? "" : ", job " + id, word("since"))};
}

/// One that has just begun has not yet said who it is.
Owner owner_of(FileDescriptor const& file) {
  for (int tries = 0; tries < 20; ++tries) {
    if (auto const owner = described(read_all(file))) return *owner;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {"", "it does not say which"};
}

enum class Outcome { held, held_by_another, no_locks };

/// Of the open file, not of the process: closing another descriptor of it frees nothing.
Outcome take(FileDescriptor const& file) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_OFD_SETLK, &whole) == 0) return Outcome::held;
  return errno == EAGAIN || errno == EACCES ? Outcome::held_by_another : Outcome::no_locks;
}

/// The system frees a dead process' lock at once, but a file server that of a dead host when its lease is over.
Outcome take(FileDescriptor const& file, std::string const& folder, std::chrono::milliseconds patience) {
  Outcome outcome = take(file);
  if (outcome != Outcome::held_by_another || patience.count() == 0) return outcome;
  Owner const owner = owner_of(file);
  if (owner.host == host()) return outcome;
  log::info("run folder '{}' is in use by another run ({}); waiting up to {} for its end", folder, owner.words,
            format_duration(std::chrono::duration<double>(patience).count()));
  for (auto const end = std::chrono::steady_clock::now() + patience;
       outcome != Outcome::held && std::chrono::steady_clock::now() < end && SignalListener::heard() == 0;
       outcome = take(file)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    heartbeat().beat();
  }
  return outcome == Outcome::held ? outcome : Outcome::held_by_another; // there are locks here
}

} // namespace

RunLock::RunLock(std::string const& folder, std::chrono::milliseconds patience) {
  std::string const path = folder + '/' + name;
  file_ = open_plain_file(path, O_RDWR | O_CREAT);
  KOZERO_REQUIRE(file_.is_open(), "'{}' cannot be made (its folder is gone); set run.dir to another one", path);
  switch (take(file_, folder, patience)) {
  case Outcome::held: is_held_ = true; break;
  case Outcome::held_by_another:
    throw InputError(fmt::format("run folder '{}' is in use by another run ({}); wait until it ends, stop it, or set "
                                 "another run.dir",
                                 folder, owner_of(file_).words));
  case Outcome::no_locks:
    log::warn("run folder '{}' is not locked (its file system has no locks: {}); see to it that no other run writes "
              "there",
              folder, std::strerror(errno));
  }
  if (!is_at(file_, path)) { // and perhaps made anew by the run that has the folder
    throw InputError(fmt::format("'{}' was removed while it was waited for (by hand?); look which run has the folder, "
                                 "then start again",
                                 path));
  }
  bool const written = ::ftruncate(file_.get(), 0) == 0 && write_all(file_, self());
  KOZERO_REQUIRE(written, "'{}' cannot be written ({}); free space or correct run.dir", path, std::strerror(errno));
}

bool RunLock::is_in(FileDescriptor const& folder) const { return is_at(file_, name, folder); }

} // namespace kozero
