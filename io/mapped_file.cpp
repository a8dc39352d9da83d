#include "io/mapped_file.hpp"

#include "core/error.hpp"
#include "io/file_descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace kozero {

MappedFile::MappedFile(std::string const& path) {
  auto const refuse = [&](char const* reason) {
    throw InputError(fmt::format("file '{}' cannot be read ({}); correct the path in the deck", path, reason));
  };
  // Not blocking, or opening a pipe would wait for its writer.
  FileDescriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) refuse(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) refuse("it is a folder");
  if (!S_ISREG(status.st_mode)) refuse("it is a pipe, socket or device, which cannot be mapped");

  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) refuse(std::strerror(errno));
  data_ = static_cast<std::byte const*>(data);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::expect(Access access) const {
  // Advice alone: a system that does not take it reads the file all the same.
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, access == Access::whole ? MADV_WILLNEED : MADV_RANDOM);
}

} // namespace kozero
