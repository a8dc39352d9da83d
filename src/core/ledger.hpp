#pragma once
#include "core/error.hpp"
#include "core/kokkos.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kozero {

enum class Space { device, pinned, host };

/// What a piece of memory is for. One row a (space, category) in every report.
enum class Category {
  parameters,
  gradients,
  master,
  first_moment,
  second_moment,
  activations,
  logits,
  ring,
  staging,
  workspace,
};

char const* name_of(Space space);
char const* name_of(Category category);

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
class Ledger {
public:
  Ledger() = default;
  Ledger(Ledger const&) = delete;
  Ledger& operator=(Ledger const&) = delete;

  /// Pinned memory counts against the host's limit.
  void set_limit(Space space, std::int64_t limit_bytes);
  /// LimitError where that passes the limit.
  void take(Space space, Category category, std::string const& label, std::int64_t bytes);
  void give(Space space, Category category, std::int64_t bytes);

  std::int64_t bytes(Space space, Category category) const;
  std::int64_t bytes(Space space) const;
  std::int64_t peak_bytes(Space space) const;

private:
  void require_room(Space space, std::string const& label, std::int64_t bytes) const;

  struct Account {
    std::int64_t bytes = 0;
    std::int64_t peak_bytes = 0;
    std::map<Category, std::int64_t> rows;
  };
  std::map<Space, Account> accounts_;
  std::map<Space, std::int64_t> limits_;
};

/// Which space of the ledger memory counts as. On CPU builds device and host memory are one to Kokkos, so the owner
/// says which he means by the tag.
struct OnDevice {
  using memory = DeviceMemory;
  static constexpr Space space = Space::device;
};
struct OnHost {
  using memory = HostMemory;
  static constexpr Space space = Space::host;
};
struct OnPinned {
  using memory = PinnedMemory;
  static constexpr Space space = Space::pinned;
};

/// Owns `count` elements of T, entered in a ledger. New memory is zero, or NaN patterns in checked builds when asked
/// to stay uninitialised.
template <class T, class Where>
class Buffer {
public:
  enum class Init { zero, none };
  using View = Kokkos::View<T*, Kokkos::LayoutRight, typename Where::memory>;

  Buffer() = default;
  Buffer(Ledger& ledger, Category category, std::string const& label, std::int64_t count, Init init = Init::zero)
      : claim_(ledger, category, label, count * static_cast<std::int64_t>(sizeof(T))),
        view_(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), static_cast<std::size_t>(count)) {
    if (init == Init::zero) {
      fill_bytes(0);
    } else {
#ifdef KOZERO_CHECKED
      fill_bytes(0xff); // a NaN in fp32, bf16 and fp64
#endif
    }
  }

  View const& view() const { return view_; }
  T* data() const { return view_.data(); }
  std::int64_t size() const { return static_cast<std::int64_t>(view_.extent(0)); }

private:
  void fill_bytes(int value) {
    using Bytes = Kokkos::View<unsigned char*, typename Where::memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    if (view_.extent(0) == 0) return;
    Kokkos::deep_copy(Bytes(reinterpret_cast<unsigned char*>(view_.data()), view_.extent(0) * sizeof(T)),
                      static_cast<unsigned char>(value));
  }

  // The entry in the ledger; moves with the buffer.
  class Claim {
  public:
    Claim() = default;
    Claim(Ledger& ledger, Category category, std::string const& label, std::int64_t bytes)
        : ledger_(&ledger), category_(category), bytes_(bytes) {
      ledger.take(Where::space, category, label, bytes);
    }
    Claim(Claim&& other) noexcept { swap(other); }
    Claim& operator=(Claim&& other) noexcept {
      Claim(std::move(other)).swap(*this); // what this one held goes back at once, as its memory does
      return *this;
    }
    ~Claim() {
      if (ledger_) ledger_->give(Where::space, category_, bytes_);
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
  View view_;
};

template <class T>
using DeviceBuffer = Buffer<T, OnDevice>;
template <class T>
using HostBuffer = Buffer<T, OnHost>;
template <class T>
using PinnedBuffer = Buffer<T, OnPinned>;

} // namespace kozero
