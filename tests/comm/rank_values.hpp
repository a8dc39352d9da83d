#pragma once
// Numbers that every rank can compute for every other one, and their sums by a tree written down independently of
// comm/tree_sum.
#include "comm/group.hpp"
#include "core/launch.hpp"
#include "core/ledger.hpp"
#include "core/rng.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace kozero::test {

/// What `rank` adds to element i. Magnitudes differ so much that any other order of a sum gives other bits.
template <class T>
T addend(std::uint32_t stream, int rank, std::int64_t i) {
  RngKey const key{1234, RngPurpose::generate, stream, static_cast<std::uint32_t>(rank)};
  auto const index = static_cast<std::uint64_t>(i);
  Philox4 const bits = random_bits(key, index);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits[3] % 2'000'001) - T{1'000'000};
  else
    return static_cast<T>(std::ldexp(random_uniform(key, index) - 0.5, static_cast<int>(bits[3] % 16)));
}

/// Level by level: neighbours in pairs, the last one carried up.
template <class T>
T sum_over_ranks(std::uint32_t stream, int ranks, std::int64_t i) {
  using Sum = std::conditional_t<is_half<T>, float, T>;
  std::vector<Sum> level;
  for (int r = 0; r < ranks; ++r) level.push_back(static_cast<Sum>(addend<T>(stream, r, i)));
  while (level.size() > 1) {
    std::vector<Sum> next;
    for (std::size_t r = 0; r < level.size(); r += 2) {
      next.push_back(r + 1 < level.size() ? level[r] + level[r + 1] : level[r]);
    }
    level = next;
  }
  return static_cast<T>(level.front());
}

template <class T>
bool same_bits(T const& a, T const& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// An array between guards that no collective may touch, in the memory that a test wants, with a copy on the host that
/// is written before span() and read after fetch().
template <class T>
class GuardedArray {
public:
  explicit GuardedArray(std::int64_t size, Space space = Space::device)
      : size_(size), space_(space), host_(static_cast<std::size_t>(size + 2 * guard), edge()) {
    auto const n = std::ssize(host_);
    if (space != Space::host) pinned_ = {*ledger_, Category::workspace, "test", n};
    if (space == Space::device) device_ = {*ledger_, Category::workspace, "test", n};
  }
  T& operator[](std::int64_t i) { return host_[static_cast<std::size_t>(i + guard)]; }
  std::int64_t size() const { return size_; }

  /// What the host has written, given to the lane.
  Span span(Lane const& lane = Lane()) {
    if (space_ != Space::host) std::memcpy(pinned_.data(), host_.data(), host_.size() * sizeof(T));
    if (space_ == Space::device) copy(lane, device_.pointer(), pinned_.pointer(), pinned_.size());
    return {memory() + guard, size_, dtype_of<T>, space_};
  }
  /// What the lane will have left there.
  void fetch(Lane const& lane = Lane()) {
    if (space_ == Space::device) copy(lane, on_host(host_.data()), device_.pointer(), device_.size());
    if (space_ != Space::pinned) return;
    lane.fence("test");
    std::memcpy(host_.data(), pinned_.data(), host_.size() * sizeof(T));
  }
  bool guards_intact() {
    for (std::int64_t i = 0; i < guard; ++i) {
      if (!same_bits((*this)[-1 - i], edge()) || !same_bits((*this)[size_ + i], edge())) return false;
    }
    return true;
  }

private:
  static constexpr std::int64_t guard = 16;
  static T edge() { return static_cast<T>(77); }
  T* memory() {
    return space_ == Space::device ? device_.data() : space_ == Space::pinned ? pinned_.data() : host_.data();
  }

  std::unique_ptr<Ledger> ledger_ = std::make_unique<Ledger>();
  std::int64_t size_;
  Space space_;
  std::vector<T> host_;
  PinnedBuffer<T> pinned_;
  DeviceBuffer<T> device_;
};

/// Fills it with this rank's addends.
template <class T>
void fill_addends(GuardedArray<T>& array, std::uint32_t stream, int rank) {
  for (std::int64_t i = 0; i < array.size(); ++i) array[i] = addend<T>(stream, rank, i);
}

/// Fills the own shard with what other ranks expect there, and the rest with something else.
template <class T>
void fill_shard(GuardedArray<T>& array, std::uint32_t stream, Interval shard) {
  for (std::int64_t i = 0; i < array.size(); ++i) {
    array[i] = shard.begin <= i && i < shard.end ? addend<T>(stream, 0, i) : static_cast<T>(-3);
  }
}

template <class T>
void require_gathered(GuardedArray<T>& array, std::uint32_t stream) {
  array.fetch();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < array.size(); ++i) wrong += !same_bits(array[i], addend<T>(stream, 0, i));
  REQUIRE(wrong == 0);
  REQUIRE(array.guards_intact());
}

template <class T>
void require_summed(GuardedArray<T>& array, std::uint32_t stream, int ranks, Interval interval) {
  array.fetch();
  std::int64_t wrong = 0;
  for (std::int64_t i = interval.begin; i < interval.end; ++i) {
    wrong += !same_bits(array[i], sum_over_ranks<T>(stream, ranks, i));
  }
  REQUIRE(wrong == 0);
  REQUIRE(array.guards_intact());
}

} // namespace kozero::test
