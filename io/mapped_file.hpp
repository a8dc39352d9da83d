#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace kozero {

/// A whole file in memory, read-only, mapped rather than read: pages come when they are touched and belong to all
/// ranks of a host. The file must not shrink while it is mapped (the system would end the process with SIGBUS).
///
///     MappedFile file("corpus.txt");   // InputError: missing, a folder, not readable
///     file.bytes();                    // empty for an empty file
class MappedFile {
public:
  explicit MappedFile(std::string const& path);
  ~MappedFile();
  MappedFile(MappedFile const&) = delete;
  MappedFile& operator=(MappedFile const&) = delete;

  std::span<std::byte const> bytes() const { return {data_, size_}; }

  /// How the file is going to be read, for the system's read-ahead.
  enum class Access { whole, random };
  void expect(Access access) const;

private:
  std::byte const* data_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace kozero
