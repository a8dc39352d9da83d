#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A number depends on its key and its index alone, so nothing that a rank or a thread does can move it.

#include <array>
#include <cmath>
#include <cstdint>

namespace kozero {

enum class RngPurpose : std::uint32_t { initialise = 1, shuffle = 2, generate = 3 };

/// One stream of numbers.
struct RngKey {
  std::uint64_t seed = 0;
  RngPurpose purpose = RngPurpose::initialise;
  std::uint32_t step = 0;   // epoch, or position in a text
  std::uint32_t tensor = 0; // TensorInit::stream
};

using Philox4 = std::array<std::uint32_t, 4>;

constexpr Philox4 philox4x32(Philox4 counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const product0 = 0xD2511F53ull * counter[0];
    std::uint64_t const product1 = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// 128 random bits of element `index` of a stream. The index has 48 bits, the purpose 16.
constexpr Philox4 random_bits(RngKey const& key, std::uint64_t index) {
  std::uint32_t const high = static_cast<std::uint32_t>(index >> 32) | (static_cast<std::uint32_t>(key.purpose) << 16);
  return philox4x32({static_cast<std::uint32_t>(index), high, key.step, key.tensor},
                    static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32));
}

/// Uniform in (0, 1), 53 bits.
inline double random_uniform(RngKey const& key, std::uint64_t index) {
  Philox4 const bits = random_bits(key, index);
  std::uint64_t const word = (static_cast<std::uint64_t>(bits[0]) << 32 | bits[1]) >> 11;
  return (static_cast<double>(word) + 0.5) * 0x1.0p-53;
}

/// Standard normal, by Box and Muller's method in double.
inline double random_normal(RngKey const& key, std::uint64_t index) {
  Philox4 const bits = random_bits(key, index);
  std::uint64_t const word = (static_cast<std::uint64_t>(bits[0]) << 32 | bits[1]) >> 11;
  double const u = (static_cast<double>(word) + 0.5) * 0x1.0p-53;
  double const angle = static_cast<double>(bits[2]) * (2.0 * 3.14159265358979323846 * 0x1.0p-32);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

} // namespace kozero
