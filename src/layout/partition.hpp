#pragma once
#include <algorithm>
#include <cstdint>

namespace kozero {

/// Half-open interval of elements, never negative.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  constexpr std::int64_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  friend constexpr bool operator==(Interval, Interval) = default;
};

/// The common part; empty (at a's or b's edge) where there is none.
constexpr Interval intersect(Interval a, Interval b) {
  std::int64_t const begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// Cuts `size` elements into one interval a rank: all of the same capacity, the last ones shorter or empty.
/// Any size and any number of ranks is legal. Memory for a partitioned array has `capacity()` elements, so that
/// collectives which need equal counts (NCCL) may run in place; the elements past `size()` mean nothing.
class Partition {
public:
  /// Shards start at multiples of this: 16 bytes of a 16-bit type.
  static constexpr std::int64_t alignment = 8;

  constexpr Partition(std::int64_t size, int ranks) : size_(size), ranks_(ranks) {
    std::int64_t const even = (size + ranks - 1) / ranks;
    shard_capacity_ = ranks == 1 ? size : (even + alignment - 1) / alignment * alignment;
  }

  constexpr std::int64_t size() const { return size_; }
  constexpr int ranks() const { return ranks_; }
  constexpr std::int64_t shard_capacity() const { return shard_capacity_; }
  constexpr std::int64_t capacity() const { return shard_capacity_ * ranks_; }
  constexpr Interval shard(int rank) const {
    return {std::min(size_, rank * shard_capacity_), std::min(size_, (rank + 1) * shard_capacity_)};
  }
  /// The rank of that element, which must be in [0, size()).
  constexpr int owner(std::int64_t element) const { return static_cast<int>(element / shard_capacity_); }

private:
  std::int64_t size_;
  int ranks_;
  std::int64_t shard_capacity_;
};

} // namespace kozero
