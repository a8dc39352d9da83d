#include "io/plain_file.hpp"

#include "core/error.hpp"
#include "io/system_error.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace kozero {

namespace {

std::optional<std::string> other_than_file(struct stat const& status) {
  switch (status.st_mode & S_IFMT) {
  case S_IFREG: return {};
  case S_IFLNK: return "a link";
  case S_IFDIR: return "a folder";
  case S_IFIFO: return "a pipe";
  default: return "a device or socket";
  }
}

[[noreturn]] void refuse(std::string const& path, std::string const& what) {
  throw InputError(fmt::format("'{}' is {} (of a run's folder only plain files are read and written); remove it, or "
                               "set run.dir to another folder",
                               path, what));
}

[[noreturn]] void fail(char const* what, std::string const& path, int cause) {
  throw Error(fmt::format("'{}' cannot be {} ({}); {}", path, what, std::strerror(cause),
                          remedy(cause, "free space or correct run.dir")));
}

} // namespace

std::optional<std::string> other_than_file(std::string const& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return other_than_file(status);
}

FileDescriptor open_plain_file(std::string const& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  int const cause = errno;
  struct stat status = {};
  bool const known = (file.is_open() ? ::fstat(file.get(), &status) : ::lstat(path.c_str(), &status)) == 0;
  auto const other = known ? other_than_file(status) : std::nullopt;
  if (other) refuse(path, *other);
  if (file.is_open()) ::fcntl(file.get(), F_SETFL, flags & O_APPEND); // some file systems heed O_NONBLOCK in reads
  if (!file.is_open() && cause != ENOENT) fail("opened", path, cause);
  return file;
}

bool write_all(FileDescriptor const& file, std::string_view text) {
  while (!text.empty()) {
    ssize_t const written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string read_all(FileDescriptor const& file) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    ssize_t const got = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::string> read_plain_file(std::string const& path) {
  auto const file = open_plain_file(path, O_RDONLY);
  if (!file.is_open()) return {};
  std::string text = read_all(file);
  if (errno != 0) fail("read", path, errno);
  return text;
}

bool is_at(FileDescriptor const& file, std::string const& path, FileDescriptor const& folder) {
  struct stat ours = {}, there = {};
  if (::fstatat(folder.get(), path.c_str(), &there, 0) != 0) return errno != ENOENT && errno != ENOTDIR;
  if (::fstat(file.get(), &ours) != 0) return errno != ESTALE; // NFS: removed by another host
  return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

FileDescriptor replace_file(std::string const& path, std::string_view text) {
  std::string const partial = path + ".partial";
  ::unlink(partial.c_str()); // of a killed run, or somebody's link
  FileDescriptor file(::open(partial.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!file.is_open()) fail("written", path, errno);
  // On disk before it takes the other's place, or a power cut could leave neither.
  if (!write_all(file, text) || ::fsync(file.get()) != 0 || std::rename(partial.c_str(), path.c_str()) != 0) {
    int const cause = errno;
    ::unlink(partial.c_str());
    fail("written", path, cause);
  }
  return file;
}

} // namespace kozero
