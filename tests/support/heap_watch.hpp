#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kozero::test {

/// Counts what this thread takes from the heap while it lives, but for what MPI, HDF5, oneDNN and OpenMP take for
/// themselves. malloc and its kin are those of tests/support/heap_watch.cpp, which a test program links in.
///
///     HeapWatch const watch;
///     work();
///     CHECK(watch.calls() == 0);      // watch.stacks() says where they came from
class HeapWatch {
public:
  /// Not with sanitizers, which have a malloc of their own, nor where the emulated device's queues are.
  static bool works();

  HeapWatch();
  ~HeapWatch();
  HeapWatch(HeapWatch const&) = delete;
  HeapWatch& operator=(HeapWatch const&) = delete;

  std::int64_t calls() const;
  /// The first few of them, for people.
  std::string stacks() const;
};

} // namespace kozero::test
