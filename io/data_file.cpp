#include "io/data_file.hpp"

#include "core/error.hpp"
#include "io/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace kozero {

DataFile::DataFile(std::string path) : path_(std::move(path)) {
  auto const refuse = [&](std::string const& reason) {
    throw InputError(
        fmt::format("file '{}' cannot be read ({}{}); correct the path in the deck", path_, reason, seen_from(path_)));
  };
  // Not blocking, or opening a pipe would wait for its writer.
  file_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (!file_.is_open() || ::fstat(file_.get(), &status) != 0) refuse(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) refuse("it is a folder");
  if (!S_ISREG(status.st_mode)) refuse("it is a pipe, socket or device, which cannot be read at any place");
  ::fcntl(file_.get(), F_SETFL, 0); // some file systems heed O_NONBLOCK in reads
  size_ = static_cast<std::int64_t>(status.st_size);
}

void DataFile::read(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    ssize_t const got = ::pread(file_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      std::string const cause =
          got < 0 ? std::strerror(errno) : fmt::format("it ends there, and had {} bytes when it was opened", size_);
      throw Error(
          fmt::format("file '{}' cannot be read at offset {} ({}); put it back as it was", path_, offset, cause));
    }
    offset += got;
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void DataFile::expect(Access access) const {
  // Advice alone: a system that does not take it reads the file all the same.
  ::posix_fadvise(file_.get(), 0, 0, access == Access::whole ? POSIX_FADV_WILLNEED : POSIX_FADV_RANDOM);
}

} // namespace kozero
