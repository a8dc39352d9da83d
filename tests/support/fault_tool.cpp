// Makes a rank of the program misbehave, from outside: a tool of Kokkos, which is called before each kernel, and a
// pwrite for LD_PRELOAD. FAULT says "RANK KERNEL WHAT" (tests/app/watch_test.cpp): from that kernel on.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Fault {
  int rank = -1;
  std::int64_t kernel = 0;
  std::string what;
};

Fault const& fault() {
  static Fault const read = [] {
    Fault found;
    char what[32] = "";
    char const* const text = std::getenv("FAULT");
    char const* const rank = std::getenv("PMI_RANK");
    long kernel = 0;
    if (text == nullptr || std::sscanf(text, "%d %ld %31s", &found.rank, &kernel, what) != 3) return Fault();
    if (found.rank != (rank ? std::atoi(rank) : 0)) return Fault();
    found.kernel = kernel;
    found.what = what;
    return found;
  }();
  return read;
}

void misbehave(std::string const& what) {
  if (what == "loops") {
    for (;;) usleep(1000);
  }
  if (what == "exits") std::exit(0);
  if (what == "crashes") std::raise(SIGSEGV);
  if (what == "is_slow") usleep(400);
}

} // namespace

extern "C" {
void kokkosp_init_library(int, std::uint64_t, std::uint32_t, void*) {}
void kokkosp_finalize_library() {}
void kokkosp_begin_parallel_for(char const*, std::uint32_t, std::uint64_t*) {
  static std::int64_t kernels = 0;
  if (++kernels >= fault().kernel) misbehave(fault().what);
}
void kokkosp_end_parallel_for(std::uint64_t) {}

ssize_t pwrite(int file, void const* bytes, size_t count, off_t offset) {
  using Write = ssize_t (*)(int, void const*, size_t, off_t);
  static auto const real = reinterpret_cast<Write>(dlsym(RTLD_NEXT, "pwrite"));
  if (fault().what == "writes_slowly") usleep(100'000);
  return real(file, bytes, count, offset);
}
ssize_t pwrite64(int file, void const* bytes, size_t count, off_t offset) { return pwrite(file, bytes, count, offset); }
}
