#include "core/emulated/arena.hpp"

#include "core/emulated/arena_state.hpp"
#include "core/emulated/fault.hpp"
#include "core/emulated/sanitizer.hpp"
#include "core/error.hpp"
#include "core/ledger.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kozero::emulated {

namespace {

constexpr std::int64_t range_bytes = std::int64_t{1} << 42; // of addresses, in each space
// Opened and closed as huge pages where the system has them: a small page costs as much as a large one.
constexpr std::int64_t granule = 2 << 20;
constexpr std::int64_t margin = 64; // at least, behind a slice; poisoned under AddressSanitizer

constexpr int closed = PROT_NONE;
constexpr int readable = PROT_READ;
constexpr int open = PROT_READ | PROT_WRITE;

std::int64_t page_bytes() {
  static std::int64_t const bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }
std::int64_t whole_pages(std::int64_t bytes) { return round_up(bytes, page_bytes()); }

/// For destructors and the like, which cannot throw.
[[noreturn]] void end_program(std::string const& message) {
  std::fprintf(stderr, "kozero: emulated device: %s\n", message.c_str());
  std::abort();
}

void protect(char const* begin, char const* end, int rights) {
  if (mprotect(const_cast<char*>(begin), static_cast<std::size_t>(end - begin), rights) == 0) return;
  end_program(fmt::format("mprotect failed ({}); allow the process more mappings (vm.max_map_count)", strerror(errno)));
}

struct Pages {
  char const *begin, *end;
};

struct Record {
  std::string label;
  Pages pages;
  std::int64_t bytes;
  bool released = false;
  bool stays_open = false;
};

/// The slices of one space, by rising address; new ones come last, so records stay sorted, and are kept for good.
class Range {
public:
  explicit Range(Space space) : space_(space) {
    void* const memory = mmap(nullptr, range_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    KOZERO_REQUIRE(memory != MAP_FAILED,
                   "the emulated device gets no addresses ({}); lift the limit on virtual memory (ulimit -v)",
                   strerror(errno));
    madvise(memory, range_bytes, MADV_DONTDUMP);
    begin_ = next_ = static_cast<char*>(memory) + (round_up(reinterpret_cast<std::intptr_t>(memory), granule) -
                                                   reinterpret_cast<std::intptr_t>(memory));
    end_ = static_cast<char*>(memory) + range_bytes;
    if (space != Space::pinned) madvise(begin_, static_cast<std::size_t>(end_ - begin_), MADV_HUGEPAGE);
  }

  bool holds(void const* p) const { return begin_ <= p && p < end_; }

  char* add(std::int64_t bytes, char const* label) {
    std::int64_t const taken = whole_pages(bytes + margin);
    KOZERO_REQUIRE(bytes >= 0 && taken <= end_ - granule - next_,
                   "{} memory: '{}' wants {} bytes (the emulated device has no addresses left, and gives none twice); "
                   "make smaller buffers, or keep them",
                   name_of(space_), label, bytes);
    char* const slice = std::exchange(next_, next_ + taken);
    records_.push_back({label, {slice, next_}, bytes});
    if (!live_.empty() && live_.back().end == slice) {
      live_.back().end = next_;
    } else {
      live_.push_back({slice, next_});
    }
    poison(slice + bytes, taken - bytes);
    if (open_) protect(slice, to_open(live_.back()).end, open);
    return slice;
  }

  void remove(Record& record) {
    Pages const gone = record.pages;
    record.released = true;
    if (!record.stays_open) cut(gone);
    protect(gone.begin, gone.end, closed);
    madvise(const_cast<char*>(gone.begin), static_cast<std::size_t>(gone.end - gone.begin), MADV_DONTNEED);
  }

  void leave_open(Record& record) {
    if (std::exchange(record.stays_open, true)) return;
    cut(record.pages);
    protect(record.pages.begin, record.pages.end, open);
  }

  /// One system call for each run of slices with nothing released in between.
  void set_open(bool open_now) {
    if (std::exchange(open_, open_now) == open_now) return;
    for (Pages const& run : live_) {
      Pages const pages = to_open(run);
      protect(pages.begin, pages.end, open_ ? open : closed);
    }
  }
  bool is_open() const { return open_; }

  Record* record_of(char const* p) {
    auto const after =
        std::upper_bound(records_.begin(), records_.end(), p,
                         [](char const* address, Record const& record) { return address < record.pages.begin; });
    if (after == records_.begin()) return nullptr;
    Record& record = *(after - 1);
    return p < record.pages.end ? &record : nullptr;
  }

private:
  /// With the rest of the last huge page, where nothing is yet.
  Pages to_open(Pages run) const {
    return {run.begin, run.end == next_ ? begin_ + round_up(run.end - begin_, granule) : run.end};
  }

  void cut(Pages gone) {
    auto const run = std::upper_bound(live_.begin(), live_.end(), gone.begin,
                                      [](char const* p, Pages const& pages) { return p < pages.end; });
    Pages const before{run->begin, gone.begin};
    Pages const after{gone.end, run->end};
    auto place = live_.erase(run);
    if (after.begin < after.end) place = live_.insert(place, after);
    if (before.begin < before.end) live_.insert(place, before);
  }

  Space space_;
  char* begin_;
  char* next_;
  char* end_;
  bool open_ = false;
  std::deque<Record> records_; // labels stay where they are
  std::vector<Pages> live_;
};

/// Everything there is; made with the first memory, and never destroyed, as buffers may outlive any static object.
class Arena {
public:
  Arena() {
    host.set_open(true);
    pinned.set_open(true);
  }

  Range device{Space::device};
  Range pinned{Space::pinned};
  Range host{Space::host};
  std::vector<Closure> closures;
  std::int64_t copies = 0;
  Running running{Reach::host_code, nullptr, nullptr};

  Range& range(Space space) { return space == Space::device ? device : space == Space::pinned ? pinned : host; }
  Range* range_at(void const* p) {
    for (Range* const range : {&device, &pinned, &host}) {
      if (range->holds(p)) return range;
    }
    return nullptr;
  }

  void set_reach(Reach reach) {
    Reach const before = std::exchange(running.reach, reach);
    if (before == reach) return;
    device.set_open(reach != Reach::host_code);
    host.set_open(reach != Reach::device);
    if (before == Reach::host_code) {
      for (Closure const& closure : closures) protect(closure.first, closure.last, open);
    } else if (reach == Reach::host_code) {
      close_pinned();
    }
    watch_faults(); // others, tests' main for one, may have put their handler in the place of ours
  }

  void close_pinned() {
    for (Closure const& c : closures) {
      if (c.access == Access::read) protect(c.first, c.last, readable);
    }
    for (Closure const& c : closures) { // a page that is read and written is closed
      if (c.access == Access::write) protect(c.first, c.last, closed);
    }
  }

  std::int64_t add_closure(Access access, char const* begin, std::int64_t bytes, char const* label, char const* lane);
  void remove_closure(std::int64_t number) {
    auto const found = std::find_if(closures.begin(), closures.end(),
                                    [number](Closure const& closure) { return closure.number == number; });
    if (found == closures.end()) return;
    Closure const gone = *found;
    closures.erase(found);
    if (running.reach != Reach::host_code) return;
    protect(gone.first, gone.last, open);
    close_pinned();
  }
};

Arena* the_arena = nullptr;

Arena& arena() {
  if (!the_arena) the_arena = new Arena;
  return *the_arena;
}

/// With its bytes, or with the pages that it closes: a copy that fills no page has its first page behind its end.
bool overlaps(Closure const& closure, char const* begin, char const* end) {
  bool const bytes = begin < closure.end && closure.begin < end;
  return bytes || std::max(begin, closure.first) < std::min(end, closure.last);
}

std::int64_t Arena::add_closure(Access access, char const* begin, std::int64_t bytes, char const* label,
                                char const* lane) {
  Record const* const record = bytes > 0 && pinned.holds(begin) ? pinned.record_of(begin) : nullptr;
  if (!record) return 0;
  char const* const slice = record->pages.begin;
  char const* const end = begin + bytes;
  char const* const first = slice + whole_pages(begin - slice);
  bool const to_the_end = end >= slice + record->bytes;
  char const* const last = to_the_end ? record->pages.end : slice + (end - slice) / page_bytes() * page_bytes();

  auto const spoil = [&](char const* from, char const* to) {
    auto const needed = [&](Closure const& closure) { return overlaps(closure, from, to); };
    if (from >= to || std::any_of(closures.begin(), closures.end(), needed)) return;
    std::memset(const_cast<char*>(from), 0xff, static_cast<std::size_t>(to - from));
  };
  if (access == Access::write) {
    spoil(begin, std::min(first, end));
    spoil(std::max({begin, first, std::min(last, end)}), end);
  }
  closures.push_back({++copies, access, begin, end, first, std::max(first, last), label, lane});
  if (running.reach == Reach::host_code) close_pinned();
  watch_faults();
  return copies;
}

} // namespace

void* allocate(Space space, std::int64_t bytes, char const* label) {
  watch_faults();
  return arena().range(space).add(bytes, label);
}

void release(void* memory) {
  if (!memory) return;
  char const* const begin = static_cast<char const*>(memory);
  Range* const range = arena().range_at(memory);
  Record* const record = range ? range->record_of(begin) : nullptr;
  if (!record || record->pages.begin != begin) end_program("memory is released that it has not given");
  if (record->released) end_program(fmt::format("buffer '{}' is released twice", record->label));
  std::erase_if(arena().closures, [&](Closure const& c) { return overlaps(c, begin, begin + record->bytes); });
  range->remove(*record);
}

void leave_open(void* memory) {
  Range* const range = arena().range_at(memory);
  Record* const record = range ? range->record_of(static_cast<char const*>(memory)) : nullptr;
  if (record && !record->released) range->leave_open(*record);
}

std::optional<Space> range_of(void const* p) {
  if (!the_arena) return {};
  for (Space const space : {Space::device, Space::pinned, Space::host}) {
    if (the_arena->range(space).holds(p)) return space;
  }
  return {};
}

Space space_of(void const* p) { return range_of(p).value_or(Space::host); }

std::optional<Slice> slice_of(void const* p) {
  std::optional<Space> const space = range_of(p);
  Record const* const record = space ? the_arena->range(*space).record_of(static_cast<char const*>(p)) : nullptr;
  if (!record) return {};
  return Slice{record->label.c_str(), record->pages.begin, record->bytes, *space, record->released, record->stays_open};
}

Running const& running() { return arena().running; }

Closure const* closure_of(char const* begin, char const* end, Access wanted) {
  if (arena().running.reach != Reach::host_code) return nullptr;
  for (Closure const& closure : arena().closures) {
    if (closure.closes(begin, end, wanted)) return &closure;
  }
  return nullptr;
}

bool is_open(void const* p, std::int64_t bytes, Access access) {
  std::optional<Space> const space = bytes > 0 ? range_of(p) : std::nullopt;
  if (!space) return true;
  char const* const begin = static_cast<char const*>(p);
  std::optional<Slice> const slice = slice_of(p);
  return slice && !slice->released && begin + bytes <= slice->begin + slice->bytes &&
         (slice->stays_open || arena().range(*space).is_open()) && !closure_of(begin, begin + bytes, access);
}

namespace {

/// The first pending copy that works on any byte of [begin, end) and forbids the access, or null.
Closure const* copy_on(char const* begin, char const* end, Access wanted) {
  if (!the_arena || the_arena->running.reach != Reach::host_code) return nullptr;
  auto const found = std::ranges::find_if(the_arena->closures,
                                          [&](Closure const& closure) { return closure.works_on(begin, end, wanted); });
  return found != the_arena->closures.end() ? &*found : nullptr;
}

/// "MPI_Isend is handed bytes 8 to 24 of device buffer 'h.0'"
std::string handed(char const* who, Slice const& slice, void const* p, std::int64_t bytes) {
  std::int64_t const first = static_cast<char const*>(p) - slice.begin;
  return fmt::format("{} is handed bytes {} to {} of {} buffer '{}'", who, first, first + bytes, name_of(slice.space),
                     slice.label);
}

} // namespace

void require_inside(void const* p, std::int64_t bytes, char const* who) {
  if (bytes <= 0 || !range_of(p)) return;
  std::optional<Slice> const slice = slice_of(p);
  if (!slice) {
    throw Error(fmt::format("{} is handed {} memory that no buffer has (an address was never set, or is past the last "
                            "buffer); hand it a buffer's",
                            who, name_of(space_of(p))));
  }
  if (slice->released) {
    throw Error(handed(who, *slice, p, bytes) + " (it was released); keep the buffer until the call is over");
  }
  if (static_cast<char const*>(p) + bytes > slice->begin + slice->bytes) {
    throw Error(fmt::format("{} (it has {}); stay inside the buffer", handed(who, *slice, p, bytes), slice->bytes));
  }
}

void require_open(void const* p, std::int64_t bytes, char const* who, Access access) {
  require_inside(p, bytes, who);
  char const* const begin = static_cast<char const*>(p);
  Closure const* const copy = copy_on(begin, begin + bytes, access);
  if (!copy && is_open(p, bytes, access)) return;
  std::string const what = handed(who, slice_of(p).value(), p, bytes);
  if (copy) {
    throw Error(fmt::format("{} (the copy '{}' of lane '{}' that {} it has not run); wait for it", what, copy->label,
                            copy->lane, copy->access == Access::write ? "writes" : "reads"));
  }
  throw Error(fmt::format("{} (such memory is closed to it); stage it in pinned memory", what));
}

EntryRuns::EntryRuns(char const* label, char const* lane, Reach reach)
    : reach_(arena().running.reach), label_(arena().running.label), lane_(arena().running.lane) {
  arena().running.label = label;
  arena().running.lane = lane;
  arena().set_reach(reach);
}

EntryRuns::~EntryRuns() {
  arena().set_reach(reach_);
  arena().running.label = label_;
  arena().running.lane = lane_;
}

PendingCopy::PendingCopy(PendingCopy&& other) noexcept : number_(std::exchange(other.number_, 0)) {}

PendingCopy& PendingCopy::operator=(PendingCopy&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

PendingCopy::~PendingCopy() {
  if (number_ != 0) arena().remove_closure(number_);
}

PendingCopy close_for_write(void* destination, std::int64_t bytes, char const* label, char const* lane) {
  return PendingCopy(arena().add_closure(Access::write, static_cast<char const*>(destination), bytes, label, lane));
}

PendingCopy close_for_read(void const* source, std::int64_t bytes, char const* label, char const* lane) {
  return PendingCopy(arena().add_closure(Access::read, static_cast<char const*>(source), bytes, label, lane));
}

} // namespace kozero::emulated
