#pragma once
// From one stack to another. Registers that a call keeps are all that is kept: a few instructions, where the system's
// swapcontext makes a system call for the signal mask.

#include <cstdint>

namespace kozero::emulated {

/// Goes on where `to` was left, and notes in `from` where this code is left.
void switch_context(void** from, void* to);

/// A context that begins with f(argument), which never returns, on the stack [bottom, bottom + bytes).
void* make_context(void* bottom, std::int64_t bytes, void (*f)(void*), void* argument);

} // namespace kozero::emulated
