#pragma once
#include "layout/received.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kozero {

/// What a collective moves. Control is scalars, texts, hashes and checkpoints: all that is not an update's work.
enum class Traffic { parameters, gradients, control };

constexpr char const* name_of(Traffic purpose) {
  constexpr std::array<char const*, 3> names = {"parameters", "gradients", "control"};
  return names[static_cast<std::size_t>(purpose)];
}

/// Elements and bytes that this rank received from others, by purpose. Under the algorithms that the table of ZeRO
/// counts (ring, or pairwise exchange) a rank receives (N-1)/N of an array in an all_gather or a reduce_scatter and
/// twice that in an all_reduce; what it sends is the same, on average over ranks exactly. Sums in two levels bring more
/// in all, and far less between hosts (layout/received.hpp).
class TrafficLedger {
public:
  struct Row {
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
    std::int64_t between_hosts_bytes = 0; // of those, what came from another host
    std::int64_t early_bytes = 0; // of those, what had come before anybody waited for it (Pending::arrived_bytes)
  };
  void add(Traffic purpose, std::int64_t elements, std::int64_t element_bytes) {
    add(purpose, Received{.elements = elements, .bytes = elements * element_bytes});
  }
  void add(Traffic purpose, Received const& received) {
    Row& row = rows_[static_cast<std::size_t>(purpose)];
    row.elements += received.elements;
    row.bytes += received.bytes;
    row.between_hosts_bytes += received.between_hosts_bytes;
  }
  void add_early(Traffic purpose, std::int64_t bytes) { rows_[static_cast<std::size_t>(purpose)].early_bytes += bytes; }
  Row const& operator[](Traffic purpose) const { return rows_[static_cast<std::size_t>(purpose)]; }

private:
  std::array<Row, 3> rows_{};
};

} // namespace kozero
