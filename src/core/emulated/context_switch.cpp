#include "core/emulated/context_switch.hpp"

#include <cstring>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

#if defined(__x86_64__)
// The System V ABI keeps rbx, rbp, r12 to r15 and the control words of SSE and x87 (which kernels do not change). A
// context begins in kozero_begin_context with the function in r12 and its argument in r13.
asm(R"(
.text
.p2align 4
.globl kozero_switch_context
.hidden kozero_switch_context
.type kozero_switch_context, @function
kozero_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kozero_switch_context, .-kozero_switch_context

.p2align 4
.globl kozero_begin_context
.hidden kozero_begin_context
.type kozero_begin_context, @function
kozero_begin_context:
  .cfi_startproc
  .cfi_undefined rip
  movq %r13, %rdi
  call *%r12
  ud2
  .cfi_endproc
.size kozero_begin_context, .-kozero_begin_context
)");
#elif defined(__aarch64__)
// AAPCS64 keeps x19 to x30 and d8 to d15.
asm(R"(
.text
.p2align 4
.globl kozero_switch_context
.hidden kozero_switch_context
.type kozero_switch_context, %function
kozero_switch_context:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size kozero_switch_context, .-kozero_switch_context

.p2align 4
.globl kozero_begin_context
.hidden kozero_begin_context
.type kozero_begin_context, %function
kozero_begin_context:
  .cfi_startproc
  .cfi_undefined x30
  mov x0, x20
  blr x19
  brk #0
  .cfi_endproc
.size kozero_begin_context, .-kozero_begin_context
)");
#endif

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" void kozero_switch_context(void** from, void* to);
extern "C" void kozero_begin_context();
#endif

namespace kozero::emulated {

#if defined(__x86_64__) || defined(__aarch64__)

void switch_context(void** from, void* to) { kozero_switch_context(from, to); }

void* make_context(void* bottom, std::int64_t bytes, void (*f)(void*), void* argument) {
  void** const top = reinterpret_cast<void**>(static_cast<char*>(bottom) + bytes); // aligned to 16
#if defined(__x86_64__)
  void** const frame = top - 9; // r15, r14, r13, r12, rbx, rbp, where to go, and two so that its call is aligned
  std::memset(frame, 0, 9 * sizeof(void*));
  frame[2] = argument;
  frame[3] = reinterpret_cast<void*>(f);
  frame[6] = reinterpret_cast<void*>(kozero_begin_context);
#else
  void** const frame = top - 20;
  std::memset(frame, 0, 20 * sizeof(void*));
  frame[0] = reinterpret_cast<void*>(f);
  frame[1] = argument;
  frame[11] = reinterpret_cast<void*>(kozero_begin_context);
#endif
  return frame;
}

#else

namespace {

void begin(unsigned f_high, unsigned f_low, unsigned argument_high, unsigned argument_low) {
  auto const joined = [](std::uint64_t high, std::uint64_t low) { return high << 32 | low; };
  auto* const f = reinterpret_cast<void (*)(void*)>(joined(f_high, f_low));
  f(reinterpret_cast<void*>(joined(argument_high, argument_low)));
}

} // namespace

/// What is left goes to the stack that is left, as above.
void switch_context(void** from, void* to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

void* make_context(void* bottom, std::int64_t bytes, void (*f)(void*), void* argument) {
  auto* const context = static_cast<ucontext_t*>(bottom); // at the far end of the stack that it describes
  getcontext(context);
  constexpr std::int64_t own = 8192;
  static_assert(sizeof(ucontext_t) <= own);
  context->uc_stack.ss_sp = static_cast<char*>(bottom) + own;
  context->uc_stack.ss_size = static_cast<std::size_t>(bytes - own);
  context->uc_link = nullptr;
  auto const high = [](auto p) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(p) >> 16 >> 16); };
  auto const low = [](auto p) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(p)); };
  makecontext(context, reinterpret_cast<void (*)()>(begin), 4, high(f), low(f), high(argument), low(argument));
  return context;
}

#endif

} // namespace kozero::emulated
