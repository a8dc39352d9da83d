#pragma once
#include "config/config.hpp"

#include <vector>

namespace kozero {

/// Ranks that belong together: those that hold parts of one tensor, those that hold parts of one window, those that
/// share the state of the same parameters between them, and all.
enum class GroupKind { tensor, context, state, world };

/// The ranks as a grid data × context × tensor, in pure integers. Neighbours in `tensor` are neighbours in rank, so
/// that they stand on one node; then come those in `context`.
///
///     GridShape const shape = grid_shape(config.parallel, 8);   // tensor: 2 leaves data 4, context 1
///     shape.members(GroupKind::tensor, 5);                      // 4, 5
///     shape.members(GroupKind::state, 5);                       // 1, 3, 5, 7
struct GridShape {
  struct Place {
    int data = 0;
    int context = 0;
    int tensor = 0;
    friend bool operator==(Place const&, Place const&) = default;
  };

  int data = 1;
  int context = 1;
  int tensor = 1;

  int ranks() const { return data * context * tensor; }
  Place place_of(int rank) const;
  int rank_at(Place const& place) const;
  /// The group of that kind that `rank` is in, by rank.
  std::vector<int> members(GroupKind kind, int rank) const;
};

/// InputError where the ranks cannot be cut so.
GridShape grid_shape(ParallelConfig const& parallel, int ranks);

} // namespace kozero
