#pragma once
// Numbers that every rank can compute for every other one, and their sums by a tree written down independently of
// comm/tree_sum.
#include "comm/group.hpp"
#include "core/rng.hpp"
#include "support/catch.hpp"
#include "support/device_array.hpp"

#include <cmath>
#include <cstring>
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

/// An array between guards that no collective may touch.
template <class T, class Memory = DeviceMemory>
class GuardedArray {
public:
  explicit GuardedArray(std::int64_t size)
      : size_(size), memory_(ledger_of_tests(), Category::workspace, "of a test", size + 2 * guard) {
    set(std::vector<T>(static_cast<std::size_t>(size), edge()));
  }

  void set(std::vector<T> const& values) const {
    std::vector<T> all(guard, edge());
    all.insert(all.end(), values.begin(), values.end());
    all.resize(all.size() + guard, edge());
    write_values({memory_.data(), Memory::kind}, all);
  }
  std::vector<T> get() const { return read_values<T>({data(), Memory::kind}, size_); }
  bool guards_intact() const {
    for (std::int64_t const at : {std::int64_t{0}, guard + size_}) {
      for (T const& value : read_values<T>({memory_.data() + at, Memory::kind}, guard)) {
        if (!same_bits(value, edge())) return false;
      }
    }
    return true;
  }

  std::int64_t size() const { return size_; }
  T* data() const { return memory_.data() + guard; }
  Span span() const { return {data(), size_, dtype_of<T>, Memory::kind}; }

private:
  static constexpr std::int64_t guard = 16;
  static T edge() { return static_cast<T>(77); }
  std::int64_t size_;
  Buffer<T, Memory> memory_;
};

/// Fills it with this rank's addends.
template <class T, class Memory>
void fill_addends(GuardedArray<T, Memory> const& array, std::uint32_t stream, int rank) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(addend<T>(stream, rank, i));
  array.set(values);
}

/// Fills the own shard with what other ranks expect there, and the rest with something else.
template <class T>
void fill_shard(GuardedArray<T> const& array, std::uint32_t stream, Interval shard) {
  std::vector<T> values(static_cast<std::size_t>(array.size()), static_cast<T>(-3));
  for (std::int64_t i = shard.begin; i < shard.end; ++i) values[i] = addend<T>(stream, 0, i);
  array.set(values);
}

template <class T>
void require_gathered(GuardedArray<T> const& array, std::uint32_t stream) {
  std::vector<T> const values = array.get();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < array.size(); ++i) wrong += !same_bits(values[i], addend<T>(stream, 0, i));
  REQUIRE(wrong == 0);
  REQUIRE(array.guards_intact());
}

template <class T, class Memory>
void require_summed(GuardedArray<T, Memory> const& array, std::uint32_t stream, int ranks, Interval interval) {
  std::vector<T> const values = array.get();
  std::int64_t wrong = 0;
  for (std::int64_t i = interval.begin; i < interval.end; ++i) {
    wrong += !same_bits(values[i], sum_over_ranks<T>(stream, ranks, i));
  }
  REQUIRE(wrong == 0);
  REQUIRE(array.guards_intact());
}

} // namespace kozero::test
