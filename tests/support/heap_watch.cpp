#include "support/heap_watch.hpp"

#include "core/kokkos.hpp"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !KOZERO_EMULATED
#define KOZERO_WATCHES_HEAP 1
#else
#define KOZERO_WATCHES_HEAP 0
#endif

#if KOZERO_WATCHES_HEAP
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string_view>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

constexpr int most_frames = 48;
constexpr int own_frames = 2; // count() and malloc
constexpr std::size_t kept_stacks = 4;

struct Stack {
  std::array<void*, most_frames> frames;
  int count = 0;
};

struct Seen {
  bool watching = false;
  std::int64_t calls = 0;
  std::array<Stack, kept_stacks> stacks;
};

thread_local Seen seen;

std::string_view module_of(void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || !info.dli_fname) return {};
  std::string_view const path = info.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

/// Whether one of the libraries that may asked for it: on the way up from malloc it comes before the program, Kokkos
/// and fmt. Those in between, as the C++ library, only pass it on.
bool is_a_librarys(Stack const& stack) {
  static std::string_view const program = module_of(reinterpret_cast<void*>(&is_a_librarys));
  for (int f = own_frames; f < stack.count; ++f) {
    std::string_view const module = module_of(stack.frames[static_cast<std::size_t>(f)]);
    for (std::string_view const name : {"libmpi", "libhdf5", "libdnnl", "libgomp"}) {
      if (module.starts_with(name)) return true;
    }
    if (module == program || module.starts_with("libkokkos") || module.starts_with("libfmt")) return false;
  }
  return false;
}

[[gnu::noinline]] void count() {
  if (!seen.watching) return;
  seen.watching = false; // looking takes memory too
  Stack stack;
  stack.count = backtrace(stack.frames.data(), most_frames);
  if (!is_a_librarys(stack)) {
    if (seen.calls < static_cast<std::int64_t>(kept_stacks)) seen.stacks[static_cast<std::size_t>(seen.calls)] = stack;
    ++seen.calls;
  }
  seen.watching = true;
}

} // namespace

extern "C" {
void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  count();
  return __libc_calloc(n, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  count();
  return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) {
  count();
  *to = __libc_memalign(alignment, bytes);
  return *to ? 0 : ENOMEM;
}
}
#endif

namespace kozero::test {

bool HeapWatch::works() { return KOZERO_WATCHES_HEAP; }

#if KOZERO_WATCHES_HEAP

HeapWatch::HeapWatch() {
  void* frame = nullptr;
  backtrace(&frame, 1); // the first call loads a library
  seen.calls = 0;
  seen.watching = true;
}
HeapWatch::~HeapWatch() { seen.watching = false; }

std::int64_t HeapWatch::calls() const { return seen.calls; }

std::string HeapWatch::stacks() const {
  seen.watching = false;
  std::string text;
  for (std::int64_t s = 0; s < std::min<std::int64_t>(seen.calls, kept_stacks); ++s) {
    Stack const& stack = seen.stacks[static_cast<std::size_t>(s)];
    char** const lines = backtrace_symbols(stack.frames.data(), stack.count);
    for (int f = own_frames; f < std::min(stack.count, 12); ++f) text += std::string(lines[f]) + "\n";
    std::free(lines);
    text += "\n";
  }
  return text;
}

#else

HeapWatch::HeapWatch() = default;
HeapWatch::~HeapWatch() = default;
std::int64_t HeapWatch::calls() const { return 0; }
std::string HeapWatch::stacks() const { return {}; }

#endif

} // namespace kozero::test
