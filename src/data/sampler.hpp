#pragma once
#include <cstdint>

namespace kozero {

/// The order in which a run sees the windows of its training set. Sample s = 0, 1, 2, … of the whole run is a window;
/// samples [e·W, (e+1)·W), epoch e, are each of the W windows once, in an order that depends on (seed, e) alone. No
/// list is stored: the permutation is computed for one index at a time, so any W costs the same and a resumed run only
/// needs to know how many samples it has seen.
///
/// The permutation is a Feistel network over Philox bits on the least power of two ≥ W, walked along its cycle until
/// it lands below W (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
///
///     Sampler sampler(1337, set.windows);
///     set.read_window(sampler.window(s), inputs, targets);
class Sampler {
public:
  /// Throws when there is no window.
  Sampler(std::int64_t seed, std::int64_t windows);

  std::int64_t windows() const { return windows_; }
  std::int64_t epoch(std::int64_t sample) const { return sample / windows_; }
  /// In [0, windows()), for any sample ≥ 0.
  std::int64_t window(std::int64_t sample) const;

private:
  std::uint64_t encrypt(std::uint64_t epoch, std::uint64_t index) const;

  std::uint64_t seed_;
  std::int64_t windows_;
  int low_bits_;  // the index is cut into a low and a high half,
  int high_bits_; // which together just hold windows - 1
};

} // namespace kozero
