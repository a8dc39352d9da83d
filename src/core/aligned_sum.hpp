#pragma once
// Sums whose bits depend on the addends and their positions alone: not on who adds which of them, nor in what pieces.

#include "core/error.hpp"
#include "core/kokkos.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace kozero {

/// Leaves index · 2^level … (index + 1) · 2^level - 1 of a tree.
struct AlignedNode {
  std::int64_t level = 0;
  std::int64_t index = 0;
  KOKKOS_FUNCTION constexpr std::int64_t begin() const { return index << level; }
  KOKKOS_FUNCTION constexpr std::int64_t end() const { return (index + 1) << level; }
  constexpr bool is_left_of(AlignedNode other) const {
    return level == other.level && index % 2 == 0 && other.index == index + 1;
  }
  constexpr AlignedNode parent() const { return {level + 1, index / 2}; }
  friend constexpr bool operator==(AlignedNode, AlignedNode) = default;
};

/// A sum over numbered leaves by a binary tree of neighbours, ((0+1)+(2+3))+…; a node without a right neighbour goes up
/// as it is. A value is `width` doubles, each with a sum of its own. Whoever has only some of the leaves adds those, or
/// whole nodes of them: they become the fewest nodes that the tree has for them, from which others complete the sum
/// (comm/joined_sum.hpp).
///
///     AlignedSum<1> sum(3);
///     sum.add({0, 0}, {a});
///     sum.add({0, 1}, {b});
///     sum.add({0, 2}, {c});
///     sum.total();               // {(a + b) + c}
template <int width>
class AlignedSum {
public:
  using Value = std::array<double, width>;
  struct NodeSum {
    AlignedNode node;
    Value value;
  };

  explicit AlignedSum(std::int64_t leaves) : leaves_(leaves) {}

  std::int64_t leaves() const { return leaves_; }
  void clear() { nodes_.clear(); }
  /// Of what was added, in order of position: no two have the same parent.
  std::vector<NodeSum> const& nodes() const { return nodes_; }

  /// A node whose leaves all exist and come after all that were added before; there may be gaps.
  void add(AlignedNode node, Value value) {
    KOZERO_REQUIRE((nodes_.empty() ? 0 : nodes_.back().node.end()) <= node.begin() && node.end() <= leaves_,
                   "leaves {} to {} were to be added to a sum of {} out of turn (a fault of kozero); please report it",
                   node.begin(), node.end() - 1, leaves_);
    for (; !nodes_.empty() && nodes_.back().node.is_left_of(node); node = node.parent()) {
      value = plus(nodes_.back().value, value);
      nodes_.pop_back();
    }
    nodes_.push_back({node, value});
  }

  /// The sum when all leaves were added; 0 of none.
  Value total() const {
    std::int64_t complete = 0;
    for (auto const& [node, value] : nodes_) complete = node.begin() == complete ? node.end() : -1;
    KOZERO_REQUIRE(complete == leaves_, "a sum of {} leaves lacks some (a fault of kozero); please report it", leaves_);
    if (nodes_.empty()) return Value{};
    Value sum = nodes_.back().value;
    for (std::size_t p = nodes_.size() - 1; p-- > 0;) sum = plus(nodes_[p].value, sum);
    return sum;
  }

private:
  static Value plus(Value const& left, Value const& right) {
    Value sum;
    for (int i = 0; i < width; ++i) sum[i] = left[i] + right[i];
    return sum;
  }

  std::int64_t leaves_;
  std::vector<NodeSum> nodes_;
};

/// The sum of `values` as leaves 0, 1, …: the left half of a tree has the largest power of two of them below all.
inline double neighbour_sum(std::span<double const> values) {
  if (values.empty()) return 0;
  if (values.size() == 1) return values[0];
  std::size_t const left = std::bit_floor(values.size() - 1);
  return neighbour_sum(values.first(left)) + neighbour_sum(values.subspan(left));
}

} // namespace kozero
