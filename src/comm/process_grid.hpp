#pragma once
#include "comm/grid_shape.hpp"
#include "comm/group.hpp"
#include "core/ledger.hpp"

#include <array>
#include <memory>
#include <vector>

namespace kozero {

/// The groups that a rank belongs to, made of all ranks as the deck's section `parallel` says: `tensor`, `context`,
/// `state` (data × context with the same tensor index: they shard the state of the same parameters) and `world`.
/// Groups of the same ranks are one: the same memory, the same count of traffic. How they exchange says
/// choose_transport.
///
///     auto const world = make_world_ranks();
///     ProcessGrid const grid(*world, config.parallel, ledger);   // collective; an error of one rank is all ranks'
///     Engine<T> engine(…, grid.state(), ledger);
///
/// The one place that reads the section. `world` and the ledger must outlive it.
class ProcessGrid {
public:
  ProcessGrid(Ranks& world, ParallelConfig const& parallel, Ledger& ledger);

  GridShape const& shape() const { return shape_; }
  Group tensor() const { return group(GroupKind::tensor); }
  Group context() const { return group(GroupKind::context); }
  Group state() const { return group(GroupKind::state); }
  Group world() const { return group(GroupKind::world); }

private:
  struct Made {
    std::vector<int> members;
    std::unique_ptr<Ranks> split; // null for the world, which is there already
    Ranks& ranks;
    std::unique_ptr<Collectives> collectives;
  };
  Made& make(std::vector<int> const& members, Ranks& world);
  Group group(GroupKind kind) const;

  GridShape shape_;
  std::vector<std::unique_ptr<Made>> made_;
  std::array<Made*, 4> groups_{}; // by kind
};

} // namespace kozero
