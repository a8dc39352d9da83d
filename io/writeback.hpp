#pragma once
// Private to io.

#include <cstdint>
#include <functional>

namespace kozero {

/// Sends what is written to a file to its disk while more is being written: the disk does not idle until the end, what
/// waits in memory is bounded, and a slow disk shows as work that gets on, not as one long fsync.
///
///     Writeback writeback(file, [] { heartbeat().beat(); });
///     …                                          // write
///     if (!writeback.wrote(bytes)) …             // the disk has failed: errno
class Writeback {
public:
  /// `file` is a descriptor that stays open. `gets_on` is called whenever a part has reached the disk.
  Writeback(int file, std::function<void()> const& gets_on) : file_(file), gets_on_(gets_on) {}
  bool wrote(std::int64_t bytes);

private:
  int file_;
  std::function<void()> const& gets_on_;
  std::int64_t waiting_ = 0;
};

} // namespace kozero
