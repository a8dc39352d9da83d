#pragma once
#include "io/file_descriptor.hpp"

#include <chrono>
#include <string>

namespace kozero {

/// One run writes into a folder: it holds a lock on the file `lock` there, which says in JSON who it is. The system
/// frees it with the process, however that ends, on this host or over NFS. The file stays; alone it means nothing.
///
///     RunLock const lock("/home/…/runs/quickstart");
///
/// InputError that names the owner where another run holds it, or where `lock` is no plain file. On a file system
/// without locks one warning, and nothing is held. Private to io.
class RunLock {
public:
  /// Waits up to `patience` for a process of another host; the system says of one of this host at once whether it is
  /// there.
  explicit RunLock(std::string const& folder, std::chrono::milliseconds patience = {});

  bool is_held() const { return is_held_; }
  /// The file in the folder, an open one, is still this one.
  bool is_in(FileDescriptor const& folder) const;

private:
  FileDescriptor file_;
  bool is_held_ = false;
};

} // namespace kozero
