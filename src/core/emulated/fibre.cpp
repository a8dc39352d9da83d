#include "core/emulated/fibre.hpp"

#include "core/emulated/context_switch.hpp"
#include "core/emulated/sanitizer.hpp"
#include "core/error.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace kozero::emulated {

namespace {

constexpr std::int64_t stack_bytes = 256 << 10; // of a kernel's thread; AddressSanitizer makes frames larger

std::int64_t page_bytes() { return sysconf(_SC_PAGESIZE); }

} // namespace

Fibre::Fibre() {
  auto const bytes = static_cast<std::size_t>(page_bytes() + stack_bytes);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  KOZERO_REQUIRE(memory != MAP_FAILED, "a thread of a team gets no stack (no memory); free some");
  mprotect(memory, static_cast<std::size_t>(page_bytes()), PROT_NONE);
  stack_ = static_cast<char*>(memory) + page_bytes();
  here_ = make_context(
      stack_, stack_bytes, [](void* self) { main(static_cast<Fibre*>(self)); }, this);
}

Fibre::~Fibre() { munmap(stack_ - page_bytes(), static_cast<std::size_t>(page_bytes() + stack_bytes)); }

void Fibre::start(void (*f)(void*), void* argument) {
  f_ = f;
  argument_ = argument;
  ended_ = false;
  error_ = nullptr;
}

void Fibre::main(Fibre* self) {
  enter_stack(nullptr, &self->outside_bottom_, &self->outside_bytes_);
  for (;;) {
    try {
      self->f_(self->argument_);
    } catch (...) {
      self->error_ = std::current_exception();
    }
    self->ended_ = true;
    self->pause();
  }
}

void Fibre::pause() {
  void* fake_stack = nullptr;
  leave_stack(&fake_stack, outside_bottom_, static_cast<std::int64_t>(outside_bytes_));
  switch_context(&here_, outside_);
  enter_stack(fake_stack, &outside_bottom_, &outside_bytes_);
}

void Fibre::resume() {
  void* fake_stack = nullptr;
  leave_stack(&fake_stack, stack_, stack_bytes);
  switch_context(&outside_, here_);
  enter_stack(fake_stack, nullptr, nullptr);
}

} // namespace kozero::emulated
