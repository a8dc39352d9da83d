#pragma once
// What is said before memory goes to a library that hands it to the system: on the emulated device a closed page does
// not fault there, but makes the call fail.

#include "core/kokkos.hpp"

#if KOZERO_EMULATED
#include "core/emulated/arena.hpp"
#endif

#include <cstdint>

namespace kozero {

enum class LibraryUse { reads, writes };

/// On the emulated device an Error that names `call`, where host code must not touch all of the memory now.
inline void require_open([[maybe_unused]] void const* memory, [[maybe_unused]] std::int64_t bytes,
                         [[maybe_unused]] char const* call, [[maybe_unused]] LibraryUse use) {
#if KOZERO_EMULATED
  using emulated::Access;
  emulated::require_open(memory, bytes, call, use == LibraryUse::reads ? Access::read : Access::write);
#endif
}

/// Of a buffer that a thread of its own works on while lanes run: the emulated device, whose rights are the process',
/// closes it to nobody then.
inline void leave_open([[maybe_unused]] void* buffer) {
#if KOZERO_EMULATED
  emulated::leave_open(buffer);
#endif
}

} // namespace kozero
