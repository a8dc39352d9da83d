#pragma once
// What AddressSanitizer is told of memory and stacks that it does not know by itself; nothing in other builds.

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define KOZERO_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KOZERO_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef KOZERO_ADDRESS_SANITIZER
#define KOZERO_ADDRESS_SANITIZER 0
#endif

#if KOZERO_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace kozero::emulated {

/// Touching it is an error from now on.
inline void poison([[maybe_unused]] void const* begin, [[maybe_unused]] std::int64_t bytes) {
#if KOZERO_ADDRESS_SANITIZER
  __asan_poison_memory_region(begin, static_cast<std::size_t>(bytes));
#endif
}

/// Before a switch to another stack: [bottom, bottom + bytes). `fake` keeps this stack's fake frames.
inline void leave_stack([[maybe_unused]] void** fake, [[maybe_unused]] void const* bottom,
                        [[maybe_unused]] std::int64_t bytes) {
#if KOZERO_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(fake, bottom, static_cast<std::size_t>(bytes));
#endif
}

/// After the switch. Gives where the stack that was left is.
inline void enter_stack([[maybe_unused]] void* fake, [[maybe_unused]] void const** bottom,
                        [[maybe_unused]] std::size_t* bytes) {
#if KOZERO_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake, bottom, bytes);
#endif
}

} // namespace kozero::emulated
