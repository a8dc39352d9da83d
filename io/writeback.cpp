#include "io/writeback.hpp"

#include <cerrno>

#include <fcntl.h>

namespace kozero {

bool Writeback::wrote(std::int64_t bytes) {
  constexpr std::int64_t at_once = 64 << 20;
  waiting_ += bytes;
  if (waiting_ < at_once) return true;
  waiting_ = 0;
  // Waits for the part before this one, so that two are on their way at most. Where a file system has no such call, all
  // is forced to disk at the end.
  while (::sync_file_range(file_, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE) != 0) {
    if (errno == EINTR) continue;
    return errno == ENOSYS || errno == EINVAL || errno == ESPIPE || errno == EOPNOTSUPP;
  }
  gets_on_();
  return true;
}

} // namespace kozero
