#include "io/system_error.hpp"

#include <cerrno>

namespace kozero {

char const* remedy(int cause, char const* otherwise) {
  switch (cause) {
  case ENOSPC:
  case EDQUOT: return "make room, or set run.dir to another disk";
  case EFBIG: return "make room: raise the limit on the size of files (ulimit -f), or set run.dir to another disk";
  case ENOENT:
  case ENOTDIR: return "look who moved or removed it, and give its present path";
  case EACCES:
  case EPERM: return "correct its permissions, or give another path";
  case EROFS: return "mount its disk for writing, or set run.dir to another disk";
  case EAGAIN:
  case EDEADLK: return "another program has it locked: end that one, or set HDF5_USE_FILE_LOCKING=FALSE";
  case EMFILE:
  case ENFILE: return "too many files are open: raise the limit (ulimit -n)";
  case EIO:
  case ENXIO:
  case ENODEV:
  case ESTALE:
  case ETIMEDOUT:
  case EHOSTDOWN: return "look at its disk or file server, then try again";
  default: return otherwise;
  }
}

} // namespace kozero
