// For LD_PRELOAD: strikes at the n-th call by which the program changes something in a folder `checkpoints`.
// IO_FAULT says "WHAT N": "kill 17" ends the process there, "28 17" has that call fail with errno 28. IO_FAULT_COUNT
// names a file that the number of such calls is written to at the end. With IO_FAULT_NO_EXCHANGE two names cannot
// change places, as on NFS.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Fault {
  bool kills = false;
  int error = 0;
  long call = -1;
};

Fault const& fault() {
  static Fault const read = [] {
    Fault found;
    char what[16] = "";
    char const* const text = std::getenv("IO_FAULT");
    if (text == nullptr || std::sscanf(text, "%15s %ld", what, &found.call) != 2) return Fault();
    found.kills = std::strcmp(what, "kill") == 0;
    found.error = std::atoi(what);
    return found;
  }();
  return read;
}

std::atomic<long> calls = 0;

struct AtTheEnd {
  ~AtTheEnd() {
    char const* const path = std::getenv("IO_FAULT_COUNT");
    FILE* const file = path && calls > 0 ? std::fopen(path, "w") : nullptr; // not that of a launcher
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", calls.load());
    std::fclose(file);
  }
} const at_the_end;

bool is_there(char const* path) { return path != nullptr && std::strstr(path, "checkpoints") != nullptr; }

bool is_there(int file) {
  char link[64], path[PATH_MAX] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return ::readlink(link, path, sizeof path - 1) > 0 && is_there(path);
}

/// Counts a call that concerns the folder. True where it is to fail, with errno.
template <class Where>
bool strikes(Where where) {
  if (!is_there(where) || ++calls != fault().call) return false;
  if (fault().kills) std::raise(SIGKILL);
  errno = fault().error;
  return true;
}

} // namespace

#define REAL(name) reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name))

extern "C" {

ssize_t write(int file, void const* bytes, size_t count) {
  static auto const real = REAL(write);
  return strikes(file) ? -1 : real(file, bytes, count);
}
ssize_t pwrite(int file, void const* bytes, size_t count, off_t offset) {
  static auto const real = REAL(pwrite);
  return strikes(file) ? -1 : real(file, bytes, count, offset);
}
ssize_t pwrite64(int file, void const* bytes, size_t count, off64_t offset) {
  static auto const real = REAL(pwrite64);
  return strikes(file) ? -1 : real(file, bytes, count, offset);
}
int ftruncate(int file, off_t length) noexcept {
  static auto const real = REAL(ftruncate);
  return strikes(file) ? -1 : real(file, length);
}
int ftruncate64(int file, off64_t length) noexcept {
  static auto const real = REAL(ftruncate64);
  return strikes(file) ? -1 : real(file, length);
}
int fsync(int file) {
  static auto const real = REAL(fsync);
  return strikes(file) ? -1 : real(file);
}
int sync_file_range(int file, off64_t offset, off64_t count, unsigned flags) {
  static auto const real = REAL(sync_file_range);
  return strikes(file) ? -1 : real(file, offset, count, flags);
}
int open(char const* path, int flags, ...) {
  static auto const real = REAL(open);
  va_list rest;
  va_start(rest, flags);
  mode_t const mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return (flags & O_CREAT) != 0 && strikes(path) ? -1 : real(path, flags, mode);
}
int open64(char const* path, int flags, ...) {
  static auto const real = REAL(open64);
  va_list rest;
  va_start(rest, flags);
  mode_t const mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return (flags & O_CREAT) != 0 && strikes(path) ? -1 : real(path, flags, mode);
}
int mkdir(char const* path, mode_t mode) noexcept {
  static auto const real = REAL(mkdir);
  return strikes(path) ? -1 : real(path, mode);
}
int rename(char const* from, char const* to) noexcept {
  static auto const real = REAL(rename);
  return strikes(to) ? -1 : real(from, to);
}
int renameat2(int from_folder, char const* from, int to_folder, char const* to, unsigned flags) noexcept {
  static auto const real = REAL(renameat2);
  if (flags != 0 && std::getenv("IO_FAULT_NO_EXCHANGE") != nullptr) {
    errno = EINVAL;
    return -1;
  }
  return strikes(to) ? -1 : real(from_folder, from, to_folder, to, flags);
}
int symlink(char const* target, char const* path) noexcept {
  static auto const real = REAL(symlink);
  return strikes(path) ? -1 : real(target, path);
}
int unlink(char const* path) noexcept {
  static auto const real = REAL(unlink);
  return strikes(path) ? -1 : real(path);
}
int remove(char const* path) noexcept {
  static auto const real = REAL(remove);
  return strikes(path) ? -1 : real(path);
}
}
