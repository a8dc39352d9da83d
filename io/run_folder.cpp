#include "io/run_folder.hpp"

#include "core/error.hpp"
#include "io/checkpoint_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace kozero {

namespace {

[[noreturn]] void refuse(std::string const& path, std::string const& what, std::string const& why) {
  throw InputError(fmt::format("run folder '{}' {} ({}); correct run.dir or its permissions", path, what, why));
}

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

void make_folder(std::string const& path) {
  if (auto const file = obstacle(path); !file.empty()) {
    refuse(path, "cannot be made", fmt::format("'{}' is a file", file.string()));
  }
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) refuse(path, "cannot be made", error.message());
}

/// Permission bits do not tell (root, quotas, read-only mounts), so make a file and remove it.
void try_to_write(std::string const& path) {
  std::string probe = path + "/.kozero-XXXXXX";
  int const file = ::mkstemp(probe.data());
  if (file < 0) refuse(path, "cannot be written to", std::strerror(errno));
  ::close(file);
  ::unlink(probe.c_str());
}

} // namespace

RunFolder::RunFolder(std::string const& dir) {
  if (dir.empty()) throw InputError("run.dir is empty (a run writes its files there); name a folder");
  path_ = std::filesystem::absolute(dir).string(); // links stay: what they lead to may differ from host to host
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  make_folder(path_);
  make_folder(checkpoints());
  try_to_write(path_);
  try_to_write(checkpoints());
}

bool RunFolder::holds_checkpoints() const { return !checkpoint::list_steps(checkpoints()).empty(); }

void RunFolder::remove_checkpoints() const {
  std::error_code error;
  std::filesystem::remove_all(checkpoints(), error);
  if (error) refuse(path_, "keeps its old checkpoints", error.message());
  make_folder(checkpoints());
}

void RunFolder::write_deck(std::string const& text) const {
  errno = 0;
  std::ofstream file(deck_file(), std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throw Error(
        fmt::format("'{}' cannot be written ({}); free space or correct run.dir", deck_file(), std::strerror(errno)));
  }
}

} // namespace kozero
