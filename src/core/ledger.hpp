#pragma once
#include "core/activity.hpp"
#include "core/error.hpp"
#include "core/memory.hpp"

#if KOZERO_EMULATED
#include "core/emulated/queue.hpp"

#include <cstring>
#endif

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kozero {

/// What a piece of memory is for. One row a (space, category) in every report.
enum class Category {
  parameters,
  gradients,
  master,
  first_moment,
  second_moment,
  activations,
  recompute, // activations of one layer at a time, made again for its backward pass
  logits,
  ring,
  staging,
  snapshot, // of the state, for a save beside training
  workspace,
};

char const* name_of(Category category);

/// The space whose limit memory counts against: pinned memory is host memory.
Space budget_of(Space space);

struct MemoryRow {
  Space space = Space::device;
  Category category = Category::workspace;
  std::int64_t bytes = 0;
  friend bool operator==(MemoryRow const&, MemoryRow const&) = default;
};

/// What rows take of the budget of `space`, all together.
std::int64_t budget_bytes(std::vector<MemoryRow> const& rows, Space space);
/// The rows in the budget of `space`, largest first, each with the deck key that shrinks it: "\n  row …" for each.
std::string advice(std::vector<MemoryRow> const& rows, Space space);

/// What is asked for does not fit in a limit of the ledger.
class LimitError : public Error {
public:
  using Error::Error;
};

/// Keeps the account of all memory that holds model state or grows with the model, and its budgets.
///
///     Ledger ledger;
///     ledger.set_limit(Space::device, 512 << 20);
///     Buffer<float, DeviceMemory> master(ledger, Category::master, "h.0", n);   // throws when over the limit
///     ledger.bytes(Space::device, Category::master);                            // 4 * n
///
/// Buffers give back what they took when they die, so the ledger must outlive them. One thread.
///
/// A ledger that counts lets objects be built whose memory is only planned: their buffers have their size and their
/// entry, but no memory; the pointers are null.
///
///     Ledger ledger(Ledger::Buffers::counted);
///     Model<bf16> model(config, …, ledger);   // of any size, at once
///     ledger.peak_rows();
class Ledger {
public:
  enum class Buffers { allocated, counted };

  explicit Ledger(Buffers buffers = Buffers::allocated) : allocates_(buffers == Buffers::allocated) {}
  Ledger(Ledger const&) = delete;
  Ledger& operator=(Ledger const&) = delete;

  bool allocates() const { return allocates_; }
  /// Pinned memory counts against the host's limit.
  void set_limit(Space space, std::int64_t limit_bytes);
  /// LimitError where that passes the limit.
  void take(Space space, Category category, std::string const& label, std::int64_t bytes);
  void give(Space space, Category category, std::int64_t bytes);

  std::int64_t bytes(Space space, Category category) const;
  std::int64_t bytes(Space space) const;
  std::int64_t peak_bytes(Space space, Category category) const;
  std::int64_t peak_bytes(Space space) const;
  /// The most that each row ever held, in the order of the enumerators; none that stayed empty.
  std::vector<MemoryRow> peak_rows() const;

private:
  void require_room(Space space, std::string const& label, std::int64_t bytes) const;

  struct Figure {
    std::int64_t bytes = 0;
    std::int64_t peak_bytes = 0;
    void add(std::int64_t more);
  };
  struct Account {
    Figure all;
    std::map<Category, Figure> rows;
  };
  Figure row(Space space, Category category) const;
  Figure all(Space space) const;
  std::vector<MemoryRow> rows(std::int64_t Figure::*what) const;

  bool allocates_;
  std::map<Space, Account> accounts_;
  std::map<Space, std::int64_t> limits_;
};

/// Owns `count` elements of T in a memory, entered in a ledger. New memory is zero, or NaN patterns in checked builds
/// when asked to stay uninitialised. Memory that a lane may still work on must not be given back: an accelerator would
/// stop for it.
template <class T, class Memory>
class Buffer {
public:
  enum class Init { zero, none };
  using View = Kokkos::View<T*, Kokkos::LayoutRight, typename Memory::space>;

  Buffer() = default;
  Buffer(Ledger& ledger, Category category, std::string const& label, std::int64_t count, Init init = Init::zero)
      : claim_(ledger, category, label, count * static_cast<std::int64_t>(sizeof(T))) {
    if (!ledger.allocates()) {
      view_ = View(static_cast<T*>(nullptr), extent(count));
      return;
    }
    if (Memory::kind != Space::host) ++activity().allocations;
#if KOZERO_EMULATED
    memory_.reset(emulated::allocate(Memory::kind, count * static_cast<std::int64_t>(sizeof(T)), label.c_str()));
    view_ = View(static_cast<T*>(memory_.get()), extent(count));
#else
    view_ = View(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), extent(count));
#endif
    if (init == Init::zero) {
      fill_bytes(0);
    } else {
#ifdef KOZERO_CHECKED
      fill_bytes(0xff); // a NaN in fp32, bf16, fp16 and fp64
#endif
    }
  }

  View const& view() const { return view_; }
  T* data() const { return view_.data(); }
  /// data(), with its memory.
  Pointer<T, Memory> pointer() const { return {view_.data()}; }
  std::int64_t size() const { return static_cast<std::int64_t>(view_.extent(0)); }

private:
  static std::size_t extent(std::int64_t count) { return static_cast<std::size_t>(count); }

  // Before any lane knows of it.
  void fill_bytes(int value) {
    std::size_t const bytes = view_.extent(0) * sizeof(T);
    if (bytes == 0) return;
#if KOZERO_EMULATED
    emulated::EntryRuns const filling("new memory", "none", emulated::Reach::device_copying);
    std::memset(static_cast<void*>(view_.data()), value, bytes);
#else
    using Bytes = Kokkos::View<unsigned char*, typename Memory::space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    Kokkos::deep_copy(Bytes(reinterpret_cast<unsigned char*>(view_.data()), bytes), static_cast<unsigned char>(value));
#endif
  }

  // The entry in the ledger; moves with the buffer.
  class Claim {
  public:
    Claim() = default;
    Claim(Ledger& ledger, Category category, std::string const& label, std::int64_t bytes)
        : ledger_(&ledger), category_(category), bytes_(bytes) {
      ledger.take(Memory::kind, category, label, bytes);
    }
    Claim(Claim&& other) noexcept { swap(other); }
    Claim& operator=(Claim&& other) noexcept {
      Claim(std::move(other)).swap(*this); // what this one held goes back at once, as its memory does
      return *this;
    }
    ~Claim() {
      if (ledger_) ledger_->give(Memory::kind, category_, bytes_);
    }

  private:
    void swap(Claim& other) noexcept {
      std::swap(ledger_, other.ledger_);
      std::swap(category_, other.category_);
      std::swap(bytes_, other.bytes_);
    }
    Ledger* ledger_ = nullptr;
    Category category_ = Category::workspace;
    std::int64_t bytes_ = 0;
  };
  Claim claim_;
#if KOZERO_EMULATED
  struct Release {
    void operator()(void* memory) const {
      // An accelerator that frees memory waits for its work.
      if (Memory::kind != Space::host) emulated::drain_at_the_end();
      emulated::release(memory);
    }
  };
  std::unique_ptr<void, Release> memory_;
#endif
  View view_;
};

template <class T>
using DeviceBuffer = Buffer<T, DeviceMemory>;
template <class T>
using HostBuffer = Buffer<T, HostMemory>;
template <class T>
using PinnedBuffer = Buffer<T, PinnedMemory>;

} // namespace kozero
