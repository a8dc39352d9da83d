#pragma once
// Memory of the emulated device: three ranges of addresses, of which host code and device work see what an accelerator
// would let them see. doc/device.md has the picture. One thread, as the ledger.

#include <cstdint>
#include <optional>

namespace kozero {
enum class Space;
}

namespace kozero::emulated {

/// `bytes` of new memory that begin at a page, never where other memory has been. Error when there is no more.
void* allocate(Space space, std::int64_t bytes, char const* label);
/// Closes what `allocate` gave, for good. Nothing that still has to run may use it: drain_all() first, as cudaFree
/// does.
void release(void* memory);

/// What `allocate` gave stays open from now on, whatever runs: another thread works on it.
void leave_open(void* memory);

struct Slice {
  char const* label; // valid for good
  char const* begin;
  std::int64_t bytes;
  Space space;
  bool released;
  bool stays_open;
};
/// The slice in whose pages `p` is.
std::optional<Slice> slice_of(void const* p);
/// The space that `p` was allocated in; host for memory that is none of these ranges'.
Space space_of(void const* p);

enum class Access { read, write };
/// Whether code that runs now may touch all of it. Memory outside of the ranges always is open.
bool is_open(void const* p, std::int64_t bytes, Access access = Access::write);
/// Throws Error, naming buffer and caller, where memory of the ranges is not all of one buffer that lives.
///
///     require_inside(data, bytes, "kozero::copy");
void require_inside(void const* p, std::int64_t bytes, char const* who);
/// The same, and where memory is closed: a system call would not fault but fail with EFAULT.
///
///     require_open(data, bytes, "MPI_Isend", Access::read);
void require_open(void const* p, std::int64_t bytes, char const* who, Access access = Access::write);

/// What the code that runs can reach.
enum class Reach {
  host_code,     // host memory, and pinned memory that no pending copy has closed
  device,        // device and pinned memory
  device_copying // a copy of host memory: all
};

/// An entry of a queue runs while this lives. They nest: an inner one ends with the reach of the outer one, and where
/// that is the same, opening and closing costs nothing.
class EntryRuns {
public:
  EntryRuns(char const* label, char const* lane, Reach reach = Reach::device);
  ~EntryRuns();
  EntryRuns(EntryRuns const&) = delete;
  EntryRuns& operator=(EntryRuns const&) = delete;

private:
  Reach reach_;
  char const* label_;
  char const* lane_;
};

/// Keeps host code away from pinned memory that a pending copy works on, until it dies. Its home is the copy's entry in
/// the queue, so that it lives until the copy has run. Whole pages are closed; what a buffer does not fill of its last
/// page counts as its own.
class PendingCopy {
public:
  PendingCopy() = default;
  PendingCopy(PendingCopy&& other) noexcept;
  PendingCopy& operator=(PendingCopy&& other) noexcept;
  ~PendingCopy();

private:
  friend PendingCopy close_for_write(void*, std::int64_t, char const*, char const*);
  friend PendingCopy close_for_read(void const*, std::int64_t, char const*, char const*);
  explicit PendingCopy(std::int64_t number) : number_(number) {}
  std::int64_t number_ = 0; // 0: nothing is closed
};

/// The destination of a copy: its pages are closed, and edges that share a page with other data are filled with 0xff,
/// a NaN in every type, unless another pending copy needs them. Nothing happens to memory that is not pinned.
PendingCopy close_for_write(void* destination, std::int64_t bytes, char const* label, char const* lane);
/// The source of a copy: its pages can be read, but not written.
PendingCopy close_for_read(void const* source, std::int64_t bytes, char const* label, char const* lane);

} // namespace kozero::emulated
