#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace kozero {

/// What this process has asked of its device so far, by kind: what a test holds a step to. Counting costs an addition.
struct Activity {
  std::int64_t kernels = 0;
  std::int64_t library_calls = 0;
  std::int64_t fills = 0;
  std::int64_t device_copies = 0;   // within device memory
  std::int64_t link_copies = 0;     // between device and pinned memory
  std::int64_t pageable_copies = 0; // between device and other host memory: the host waits
  std::int64_t allocations = 0;     // of device and pinned memory; an accelerator may stop for each

  /// All that lanes were given.
  std::int64_t launches() const {
    return kernels + library_calls + fills + device_copies + link_copies + pageable_copies;
  }

  struct Fences {
    char const* why = nullptr;
    std::int64_t count = 0;
  };
  /// Waits of the host for a lane or an event, by name.
  std::span<Fences const> fences() const { return {fences_.data(), static_cast<std::size_t>(names_)}; }
  void count_fence(char const* why);

private:
  std::array<Fences, 64> fences_{};
  int names_ = 0;
};

/// Of this process, by the one thread that gives work to lanes.
Activity& activity();

} // namespace kozero
