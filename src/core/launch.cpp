#include "core/launch.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cstring>

namespace kozero::detail {

#if KOZERO_EMULATED

void require_memory(void const* p, Space space, std::int64_t bytes, char const* who) {
  Space const is = emulated::space_of(p);
  KOZERO_REQUIRE(is == space || (space == Space::host && is == Space::pinned),
                 "{} takes {} memory for {} memory (a fault of kozero); please report it", who, name_of(is),
                 name_of(space));
  emulated::require_inside(p, bytes, who);
}

void require_ranges(std::initializer_list<Touched> ranges, char const* who) {
  for (Touched const& range : ranges) emulated::require_inside(range.begin, range.bytes, who);
}

#endif

namespace {

void count_copy(Space to, Space from) {
  bool const pageable = to == Space::host || from == Space::host;
  bool const link = (to == Space::pinned) != (from == Space::pinned);
  ++(pageable ? activity().pageable_copies : link ? activity().link_copies : activity().device_copies);
}

#if !KOZERO_EMULATED

template <class Byte, class Memory>
using Bytes = Kokkos::View<Byte*, Kokkos::LayoutRight, typename Memory::space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// work(Memory()) with the tag of a space.
template <class Work>
void with_memory(Space space, Work const& work) {
  switch (space) {
  case Space::device: return work(DeviceMemory());
  case Space::pinned: return work(PinnedMemory());
  case Space::host: return work(HostMemory());
  }
}

#endif

} // namespace

void copy_bytes(Lane const& lane, void* to, Space to_space, void const* from, Space from_space, std::int64_t bytes) {
  if (bytes <= 0) return;
  count_copy(to_space, from_space);
#if KOZERO_EMULATED
  bool const pageable = to_space == Space::host || from_space == Space::host;
  char const* const label = "kozero::copy";
  auto const reach = pageable ? emulated::Reach::device_copying : emulated::Reach::device;
  require_memory(to, to_space, bytes, label);
  require_memory(from, from_space, bytes, label);
  auto run = [=, destination = emulated::close_for_write(to, bytes, label, lane.queue()->name().c_str()),
              source = emulated::close_for_read(from, bytes, label, lane.queue()->name().c_str())] {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  };
  lane.queue()->push(label, emulated::Entry(std::move(run), reach));
#else
  with_memory(to_space, [&](auto to_memory) {
    with_memory(from_space, [&](auto from_memory) {
      auto const count = static_cast<std::size_t>(bytes);
      Kokkos::deep_copy(
          lane.exec(), Bytes<unsigned char, decltype(to_memory)>(static_cast<unsigned char*>(to), count),
          Bytes<unsigned char const, decltype(from_memory)>(static_cast<unsigned char const*>(from), count));
    });
  });
#endif
  if (to_space == Space::host || from_space == Space::host) lane.fence("pageable copy");
  BetweenLaunches::run();
}

} // namespace kozero::detail
