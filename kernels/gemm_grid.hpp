#pragma once
// How a product is cut into pieces. The cut depends on the shape alone, so that the bits of a result do not depend on
// the number of threads that work on it.

#include <algorithm>
#include <cstdint>

namespace kozero {

/// A length cut into equal parts, each a multiple of 16 but the last.
struct Cut {
  std::int64_t length = 0;
  std::int64_t part = 0;

  Cut(std::int64_t whole, std::int64_t parts) : length(whole) {
    std::int64_t const even = (length + parts - 1) / std::max<std::int64_t>(parts, 1);
    part = std::max<std::int64_t>((even + 15) / 16 * 16, 16);
  }
  std::int64_t parts() const { return (length + part - 1) / part; }
  std::int64_t begin(std::int64_t i) const { return i * part; }
  std::int64_t size(std::int64_t i) const { return std::min(part, length - i * part); }
};

/// Tiles of c [m,n], each the work of one thread, which takes the slices of k in order. Operands of a tile's slice fit
/// into a processor's second-level cache (measured: 256 × 512 × 384 runs at the rate of larger ones), and there are
/// tiles enough for 16 threads where the shape allows it.
struct GemmGrid {
  Cut m, n, k;

  GemmGrid(std::int64_t rows, std::int64_t columns, std::int64_t inner)
      : m(rows, parts(rows, 256)), n(columns, parts(columns, 512)), k(inner, parts(inner, 384)) {
    while (tiles() < 16 && std::max(m.part, n.part) > 64) {
      if (n.part > m.part) {
        n = Cut(columns, 2 * n.parts());
      } else {
        m = Cut(rows, 2 * m.parts());
      }
    }
  }
  std::int64_t tiles() const { return m.parts() * n.parts(); }

private:
  static std::int64_t parts(std::int64_t length, std::int64_t largest) { return (length + largest - 1) / largest; }
};

} // namespace kozero
