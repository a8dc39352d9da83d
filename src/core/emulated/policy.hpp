#pragma once
// When the work of lanes runs on the emulated device, and in which order a kernel takes its indices.

#include <cstdint>
#include <numeric>
#include <string_view>

namespace kozero::emulated {

/// A device is free in all of this; what a correct program computes does not depend on it.
struct Policy {
  enum class Order {
    immediate, // each entry runs as it is given: the reference
    latest,    // an entry runs when it is forced, and only what is demanded
    earliest,  // when anything is forced, all other queues run first, newest first, as far as their events allow
    random     // entries that may run do so or not when work is given, asked after or forced
  };
  Order order = Order::latest;
  std::uint64_t seed = 0;
};

/// "immediate", "latest", "earliest" or "random:SEED"; anything else is an InputError.
Policy parse_policy(std::string_view text);
/// What KOZERO_EMULATED_POLICY says, latest where it says nothing, or what set_policy said.
Policy const& policy();
/// Runs what is queued under the policy so far, then starts the new one with its seed.
void set_policy(Policy const& policy);

/// One of 0 … n-1, the next of a sequence that the seed decides.
std::int64_t choose(std::int64_t n);

/// Indices 0 … n-1 as first, first + step, … modulo n.
struct IndexOrder {
  std::int64_t first;
  std::int64_t step;
};
/// From front to back with policy immediate. Else also from back to front, or a few at a time left out at first.
IndexOrder next_index_order(std::int64_t n);

template <class F>
void for_each_index(std::int64_t n, F const& f) {
  if (n <= 0) return;
  auto const [first, step] = next_index_order(n);
  if (step == 1 && first == 0) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  } else {
    std::int64_t i = first;
    for (std::int64_t count = 0; count < n; ++count) {
      f(i);
      i += step;
      if (i >= n) i -= n;
    }
  }
}

} // namespace kozero::emulated
