#pragma once
#include "io/file_descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kozero {

/// A file that is read part by part, at any place. It is read and not mapped: where it shrinks or its disk goes while a
/// run reads it, that is an Error with file and offset, and not the end of the process by SIGBUS. A file that is
/// removed stays readable as long as it is open.
///
///     DataFile file("corpus.txt");   // InputError: missing, a folder, not readable
///     file.read(offset, bytes);      // any number of threads at a time
class DataFile {
public:
  explicit DataFile(std::string path);

  std::string const& path() const { return path_; }
  /// In bytes, when it was opened.
  std::int64_t size() const { return size_; }
  /// Bytes [offset, offset + out.size()), which must be below size(). Error where they are not there any more.
  void read(std::int64_t offset, std::span<std::byte> out) const;

  /// How the file is going to be read, for the system's read-ahead.
  enum class Access { whole, random };
  void expect(Access access) const;

private:
  std::string path_;
  FileDescriptor file_;
  std::int64_t size_ = 0;
};

} // namespace kozero
