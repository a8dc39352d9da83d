#include "io/checkpoint_diff.hpp"

#include "layout/shape.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace kozero {

namespace {

constexpr std::int64_t at_once = 1 << 22; // elements

std::vector<std::int64_t> place_in(std::vector<std::int64_t> const& shape, std::int64_t index) {
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; index /= shape[d]) place[d] = index % shape[d];
  return place;
}

/// Elements of an array in host memory.
class Tile {
public:
  std::vector<float> const& read(ComparedCheckpoint const& from, ComparedArray const& array, Interval part) {
    values_.resize(static_cast<std::size_t>(part.size()));
    StateEntry const entry{array.name, array.kind, array.shape, part, DType::f32, values_.data(), Space::host};
    from.reader.read(entry, from.former);
    return values_;
  }

private:
  std::vector<float> values_;
};

} // namespace

double CheckpointDifference::Element::size() const {
  double const difference = std::abs(a - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

CheckpointDifference compare_checkpoints(ComparedCheckpoint const& a, ComparedCheckpoint const& b,
                                         std::span<ComparedArray const> arrays,
                                         std::function<void(std::int64_t)> const& read) {
  CheckpointDifference found;
  Tile tile_a, tile_b;
  for (auto const& array : arrays) {
    std::int64_t const size = elements_of(array.shape);
    std::int64_t const before = found.different;
    for (std::int64_t begin = 0; begin < size; begin += at_once) {
      Interval const part{begin, std::min(begin + at_once, size)};
      auto const& in_a = tile_a.read(a, array, part);
      auto const& in_b = tile_b.read(b, array, part);
      for (std::size_t i = 0; i < in_a.size(); ++i) {
        if (std::bit_cast<std::uint32_t>(in_a[i]) == std::bit_cast<std::uint32_t>(in_b[i])) continue;
        ++found.different;
        std::int64_t const index = begin + static_cast<std::int64_t>(i);
        CheckpointDifference::Element element{.index = index, .a = in_a[i], .b = in_b[i]};
        bool const is_largest = !found.largest || element.size() > found.largest->size();
        if (found.first && !is_largest) continue;
        element.array = array.name + "/" + array.kind;
        element.place = place_in(array.shape, index);
        if (!found.first) found.first = element;
        if (is_largest) found.largest = element;
      }
      found.elements += part.size();
      read(2 * found.elements * size_of(DType::f32));
    }
    ++found.arrays;
    if (found.different > before) ++found.arrays_different;
  }
  return found;
}

} // namespace kozero
