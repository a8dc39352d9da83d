// What code of host and device can reach on the emulated device, and what is said of code that tries to reach more.
#include "core/emulated/arena.hpp"
#include "core/emulated/queue.hpp"
#include "support/catch.hpp"

#include "core/error.hpp"
#include "core/ledger.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace kozero;
using namespace kozero::emulated;
using Catch::Matchers::Contains;

struct Death {
  int signal = 0;
  std::string words;
};

/// How a copy of this process ends that runs `deed`, and what it has written to stderr.
Death death_of(std::function<void()> const& deed) {
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);
    deed();
    _exit(0);
  }
  close(pipe_ends[1]);
  Death death;
  std::array<char, 256> part{};
  for (ssize_t n = 0; (n = read(pipe_ends[0], part.data(), part.size())) > 0;) {
    death.words.append(part.data(), static_cast<std::size_t>(n));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  death.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return death;
}

class Memory {
public:
  Memory(Space space, std::int64_t bytes, char const* label)
      : bytes_(static_cast<char*>(allocate(space, bytes, label))) {}
  ~Memory() { emulated::release(bytes_); }
  Memory(Memory const&) = delete;
  Memory& operator=(Memory const&) = delete;
  char* at(std::int64_t byte) const { return bytes_ + byte; }
  char get(std::int64_t byte) const { return static_cast<char const volatile*>(bytes_)[byte]; }
  void set(std::int64_t byte, char value) const { static_cast<char volatile*>(bytes_)[byte] = value; }

private:
  char* bytes_;
};

std::int64_t const page = sysconf(_SC_PAGESIZE);

} // namespace

TEST_CASE("Host code that reads or writes device memory ends the program by the buffer's name") {
  Memory const memory(Space::device, 4096, "h.0");
  Death const read = death_of([&] { memory.get(16); });
  CHECK(read.signal == SIGABRT);
  CHECK_THAT(read.words, Contains("kozero: emulated device: host code read device buffer 'h.0' at byte 16 of 4096 "
                                  "(device memory is closed while host code runs); fence the lane"));
  Death const written = death_of([&] { memory.set(4095, 1); });
  CHECK(written.signal == SIGABRT);
  CHECK_THAT(written.words, Contains("host code wrote device buffer 'h.0' at byte 4095 of 4096"));
}

TEST_CASE("Work of a lane reaches device memory, and host memory only where it copies that") {
  Memory const device(Space::device, 100, "x");
  Memory const host(Space::host, 100, "master");
  host.set(7, 5);
  {
    EntryRuns const runs("kozero::copy", "main", Reach::device_copying);
    device.set(7, host.get(7));
  }
  {
    EntryRuns const runs("kozero::fill", "main");
    CHECK(device.get(7) == 5);
    Death const death = death_of([&] { host.set(7, 1); });
    CHECK(death.signal == SIGABRT);
    CHECK_THAT(death.words, Contains("'kozero::fill' of lane 'main' wrote host buffer 'master' at byte 7 of 100 "
                                     "(host memory is closed while work of a lane runs)"));
    {
      EntryRuns const inner("kozero::copy", "side", Reach::device_copying);
      CHECK(host.get(7) == device.get(7));
    }
    CHECK_FALSE(is_open(host.at(0), 100));
    CHECK(is_open(device.at(0), 100));
  }
  CHECK(is_open(host.at(0), 100));
  CHECK_FALSE(is_open(device.at(0), 100));
  CHECK(host.get(7) == 5);
}

TEST_CASE("Memory that a thread of its own works on stays open, its neighbours do not, and it is closed in the end") {
  Memory const before(Space::host, 3 * page, "before");
  void* const left = allocate(Space::host, 100, "left open");
  Memory const after(Space::host, 3 * page, "after");
  leave_open(left);
  auto* const bytes = static_cast<char volatile*>(left);
  {
    EntryRuns const runs("kernel", "main");
    bytes[99] = 3;
    CHECK(is_open(left, 100));
    CHECK_FALSE(is_open(before.at(0), 3 * page));
    CHECK_FALSE(is_open(after.at(0), 3 * page));
    CHECK(death_of([&] { after.set(0, 1); }).signal == SIGABRT);
  }
  CHECK(bytes[99] == 3);
  before.set(3 * page - 1, 1);
  after.set(0, 1);
  release(left);
  CHECK(death_of([&] { bytes[0] = 1; }).signal == SIGABRT);
}

TEST_CASE("Memory that was released stays closed, and is never given again") {
  std::set<void*> given;
  for (int round = 0; round < 100; ++round) {
    for (Space const space : {Space::device, Space::pinned, Space::host}) {
      void* const memory = allocate(space, 1 + 100 * round, "brief");
      CHECK(given.insert(memory).second);
      CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);
      release(memory);
    }
  }
  Memory const before(Space::device, 3 * page, "before");
  void* const gone = allocate(Space::device, 10, "gone");
  Memory const after(Space::device, 3 * page, "after");
  release(gone);
  EntryRuns const runs("kernel", "main");
  for (Memory const* const memory : {&before, &after}) {
    memory->set(0, 1);
    memory->set(3 * page - 1, 1);
  }
  Death const death = death_of([&] { *static_cast<char volatile*>(gone) = 1; });
  CHECK(death.signal == SIGABRT);
  CHECK_THAT(death.words, Contains("'kernel' of lane 'main' wrote device buffer 'gone' at byte 0 of 10 after it was "
                                   "released"));
  Death const host = death_of([&] { *static_cast<char volatile*>(*given.begin()) = 1; });
  CHECK_THAT(host.words, Contains("buffer 'brief'"));
}

TEST_CASE("Memory keeps its contents while it is closed, and slices do not overlap") {
  std::vector<std::unique_ptr<Memory>> slices;
  for (int i = 0; i < 50; ++i) slices.push_back(std::make_unique<Memory>(Space::device, 1 + i * 1000, "slice"));
  for (int i = 0; i < 50; i += 3) slices[static_cast<std::size_t>(i)].reset();
  for (int round = 0; round < 3; ++round) {
    EntryRuns const runs("kernel", "main");
    for (int i = 0; i < 50; ++i) {
      if (i % 3 == 0) continue;
      Memory const& slice = *slices[static_cast<std::size_t>(i)];
      for (std::int64_t byte = 0; byte <= i * 1000; byte += 7) {
        if (round > 0) REQUIRE(slice.get(byte) == static_cast<char>(i + round - 1));
        slice.set(byte, static_cast<char>(i + round));
      }
    }
  }
}

TEST_CASE("Pinned memory that a pending copy writes is closed until the copy has run") {
  Memory const small(Space::pinned, 4, "loss");
  Memory const large(Space::pinned, 4 * page, "down");
  for (std::int64_t byte = 0; byte < 4 * page; ++byte) large.set(byte, 1);
  {
    PendingCopy const loss = close_for_write(small.at(0), 4, "kozero::loss", "main");
    PendingCopy const down = close_for_write(large.at(page / 2), 2 * page, "kozero::down", "link");
    Death const death = death_of([&] { small.get(3); });
    CHECK(death.signal == SIGABRT);
    CHECK_THAT(death.words, Contains("host code read pinned buffer 'loss' at byte 3 of 4 (the copy 'kozero::loss' of "
                                     "lane 'main' that writes it has not run); wait for its event or fence the lane"));
    CHECK(death_of([&] { large.set(page, 1); }).signal == SIGABRT);
    CHECK(large.get(page / 2 - 1) == 1); // what shares a page with the destination can be used, and is as it was
    CHECK(large.get(2 * page + page / 2) == 1);
    CHECK(large.get(page / 2) == static_cast<char>(0xff)); // but the destination's part of it cannot be trusted
    CHECK(large.get(2 * page + page / 2 - 1) == static_cast<char>(0xff));
    {
      EntryRuns const runs("kozero::down", "link");
      small.set(3, 7);
      large.set(page, 7);
    }
    CHECK_FALSE(is_open(small.at(3), 1, Access::read));
  }
  CHECK(small.get(3) == 7);
  CHECK(large.get(page) == 7);
}

TEST_CASE("Pinned memory that pending copies read can be read, and is written when the last of them has run") {
  Memory const memory(Space::pinned, 2 * page, "up");
  memory.set(0, 3);
  PendingCopy first = close_for_read(memory.at(0), page, "kozero::up", "link");
  PendingCopy second = close_for_read(memory.at(0), 2 * page, "kozero::up again", "link");
  CHECK(memory.get(0) == 3);
  Death const death = death_of([&] { memory.set(0, 1); });
  CHECK(death.signal == SIGABRT);
  CHECK_THAT(death.words,
             Contains("host code wrote pinned buffer 'up' at byte 0 of " + std::to_string(2 * page) +
                      " (the copy 'kozero::up' of lane 'link' that reads it has not run); wait for its event or fence "
                      "the lane"));
  first = PendingCopy();
  CHECK(death_of([&] { memory.set(0, 1); }).signal == SIGABRT);
  {
    PendingCopy const written = close_for_write(memory.at(0), page, "kozero::down", "link");
    CHECK_FALSE(is_open(memory.at(0), 1, Access::read)); // both
    CHECK(is_open(memory.at(page), page, Access::read));
  }
  CHECK(memory.get(0) == 3);
  second = PendingCopy();
  memory.set(0, 4);
  memory.set(page, 4);
  CHECK(memory.get(0) == 4);
}

TEST_CASE("The edges of a destination are left alone where a pending copy still reads them") {
  Memory const memory(Space::pinned, page, "both ways");
  memory.set(0, 3);
  PendingCopy const up = close_for_read(memory.at(0), 8, "kozero::up", "link");
  PendingCopy const down = close_for_write(memory.at(0), 8, "kozero::down", "link");
  CHECK(memory.get(0) == 3);
}

TEST_CASE("A pending copy leaves alone no more of a page than the bytes that it needs") {
  Memory const memory(Space::pinned, page, "small ones");
  for (std::int64_t byte = 0; byte < page; ++byte) memory.set(byte, 1);
  PendingCopy const first = close_for_write(memory.at(8), 80, "kozero::down", "link");
  PendingCopy const second = close_for_write(memory.at(1000), 80, "kozero::down", "link");
  CHECK(memory.get(8) == static_cast<char>(0xff));
  CHECK(memory.get(1000) == static_cast<char>(0xff));
  CHECK(memory.get(1079) == static_cast<char>(0xff));
  CHECK(memory.get(1080) == 1);
}

TEST_CASE("A copy that fills no page closes nothing, on whichever side of a page's end it is") {
  Memory const memory(Space::pinned, 3 * page, "pieces");
  PendingCopy const behind = close_for_read(memory.at(page + 8), 80, "kozero::up", "link");
  PendingCopy const before = close_for_read(memory.at(page - 88), 80, "kozero::up", "link");
  CHECK(is_open(memory.at(page - 8), 16));
  CHECK(is_open(memory.at(2 * page - 8), 16));
}

TEST_CASE("Nothing is closed for copies of memory that is not pinned") {
  Memory const host(Space::host, page, "master");
  char plain[16] = {};
  PendingCopy const a = close_for_write(host.at(0), page, "copy", "main");
  PendingCopy const b = close_for_write(plain, 16, "copy", "main");
  PendingCopy const c = close_for_read(plain, 16, "copy", "main");
  host.set(0, 1);
  plain[0] = 1;
  CHECK(is_open(plain, 16));
}

TEST_CASE("A slice is found by any address in it, and other memory counts as host memory") {
  Memory const device(Space::device, 5000, "h.1");
  Memory const pinned(Space::pinned, 1, "staging");
  auto const slice = slice_of(device.at(4999));
  REQUIRE(slice);
  CHECK(std::string(slice->label) == "h.1");
  CHECK(slice->begin == device.at(0));
  CHECK(slice->bytes == 5000);
  CHECK(slice->space == Space::device);
  CHECK_FALSE(slice->released);
  CHECK(space_of(pinned.at(0)) == Space::pinned);
  CHECK_FALSE(slice_of(&device));
  CHECK(space_of(&device) == Space::host);
}

TEST_CASE("Memory that is closed is refused where a system call would get it") {
  Memory const device(Space::device, 100, "h.0");
  Memory const pinned(Space::pinned, page, "staging");
  CHECK_THROWS_WITH(require_open(device.at(8), 16, "MPI_Isend"),
                    Contains("MPI_Isend is handed bytes 8 to 24 of device buffer 'h.0'") && Contains("pinned memory"));
  CHECK_NOTHROW(require_open(pinned.at(0), page, "MPI_Isend"));
  CHECK_THROWS_WITH(require_open(pinned.at(1), page, "MPI_Isend"), Contains("(it has " + std::to_string(page) + ")"));
  PendingCopy const up = close_for_read(pinned.at(0), page, "kozero::up", "link");
  CHECK_NOTHROW(require_open(pinned.at(0), page, "MPI_Isend", Access::read));
  CHECK_THROWS_WITH(require_open(pinned.at(0), page, "MPI_Irecv"), Contains("'kozero::up' of lane 'link'"));
  Memory const shared(Space::pinned, page, "shared");
  PendingCopy const down = close_for_write(shared.at(8), 8, "kozero::down", "link"); // no whole page
  CHECK_NOTHROW(require_open(shared.at(0), 8, "MPI_Isend", Access::read));
  CHECK_THROWS_WITH(require_open(shared.at(0), 9, "MPI_Isend", Access::read),
                    Contains("'kozero::down' of lane 'link'"));
  CHECK_NOTHROW(require_open(shared.at(16), 8, "MPI_Isend", Access::read));
  int const plain = 0;
  CHECK_NOTHROW(require_open(&plain, sizeof plain, "H5Dwrite"));
  CHECK_NOTHROW(require_open(nullptr, 0, "H5Dwrite"));
  void* const gone = allocate(Space::host, 10, "gone");
  emulated::release(gone);
  CHECK_THROWS_WITH(require_open(gone, 1, "H5Dwrite"), Contains("it was released"));
}

TEST_CASE("Memory that is handed on is all of one buffer that lives") {
  Memory const device(Space::device, 100, "h.0");
  Memory const next(Space::device, 100, "h.1");
  CHECK_NOTHROW(require_inside(device.at(0), 100, "kozero::gemm"));
  CHECK_NOTHROW(require_inside(device.at(100), 0, "kozero::gemm"));
  CHECK_NOTHROW(require_inside(&device, 100, "kozero::gemm"));
  CHECK_THROWS_WITH(
      require_inside(device.at(96), 8, "kozero::gemm"),
      "kozero::gemm is handed bytes 96 to 104 of device buffer 'h.0' (it has 100); stay inside the buffer");
  void* const gone = allocate(Space::device, 10, "gone");
  emulated::release(gone);
  CHECK_THROWS_WITH(require_inside(gone, 1, "kozero::gemm"), Contains("'gone' (it was released)"));
  CHECK_THROWS_WITH(require_inside(next.at(std::int64_t{1} << 40), 1, "kozero::gemm"), Contains("no buffer has"));
}

TEST_CASE("A fault that is none of the emulated device's ends the program as it does without one") {
  Memory const memory(Space::device, 1, "x");
  Death const death = death_of([] {
    std::signal(SIGSEGV, SIG_DFL);
    Memory const again(Space::device, 1, "y"); // puts the handler in the place of that one
    *reinterpret_cast<int volatile*>(page) = 1;
  });
  CHECK(death.signal == SIGSEGV);
  CHECK(death.words.empty());
}

TEST_CASE("A signal of a fault that somebody sent ends the program as it does without the emulated device") {
  Memory const memory(Space::device, 1, "x");
  Death const death = death_of([] {
    std::signal(SIGSEGV, SIG_DFL);
    Memory const again(Space::device, 1, "y"); // puts the handler in the place of that one
    std::raise(SIGSEGV);
  });
  CHECK(death.signal == SIGSEGV);
  CHECK(death.words.empty());
}

TEST_CASE("Faults are told of where others have put their handlers in the place of ours meanwhile") {
  Memory const device(Space::device, 1, "x");
  Memory const host(Space::host, 1, "master");
  Memory const pinned(Space::pinned, page, "staging");
  CHECK_THAT(death_of([&] {
               std::signal(SIGSEGV, SIG_DFL);
               EntryRuns const runs("kernel", "main");
               host.set(0, 1);
             }).words,
             Contains("host buffer 'master'"));
  CHECK_THAT(death_of([&] {
               std::signal(SIGSEGV, SIG_DFL);
               PendingCopy const down = close_for_write(pinned.at(0), page, "kozero::down", "link");
               pinned.get(0);
             }).words,
             Contains("pinned buffer 'staging'"));
}
