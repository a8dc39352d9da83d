// Who belongs to whom in a grid of ranks, in pure integers.
#include "comm/grid_shape.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <set>

using namespace kozero;
using namespace kozero::test;

namespace {

std::vector<GridShape> grids() {
  std::vector<GridShape> all;
  for (int const ranks : {1, 2, 4, 6, 8, 12}) {
    for (int tensor = 1; tensor <= ranks; ++tensor) {
      for (int context = 1; tensor * context <= ranks; ++context) {
        if (ranks % (tensor * context) == 0) all.push_back(grid_shape({.tensor = tensor, .context = context}, ranks));
      }
    }
  }
  return all;
}

} // namespace

TEST_CASE("a grid holds each rank once, at a place of its own") {
  for (GridShape const& grid : grids()) {
    CAPTURE(grid.data, grid.context, grid.tensor);
    int rank = 0;
    for (int data = 0; data < grid.data; ++data) {
      for (int context = 0; context < grid.context; ++context) {
        for (int tensor = 0; tensor < grid.tensor; ++tensor) {
          GridShape::Place const place{data, context, tensor};
          CHECK(grid.rank_at(place) == rank);
          CHECK(grid.place_of(rank) == place);
          ++rank;
        }
      }
    }
    CHECK(grid.ranks() == rank);
  }
}

TEST_CASE("each rank is in one group of each kind, whose members all name the same list") {
  for (GridShape const& grid : grids()) {
    CAPTURE(grid.data, grid.context, grid.tensor);
    struct Expected {
      GroupKind kind;
      int size;
    };
    for (auto const& [kind, size] :
         {Expected{GroupKind::tensor, grid.tensor}, Expected{GroupKind::context, grid.context},
          Expected{GroupKind::state, grid.data * grid.context}, Expected{GroupKind::world, grid.ranks()}}) {
      std::set<std::vector<int>> groups;
      for (int rank = 0; rank < grid.ranks(); ++rank) {
        auto const members = grid.members(kind, rank);
        CHECK(static_cast<int>(members.size()) == size);
        CHECK(std::ranges::is_sorted(members));
        CHECK(std::ranges::count(members, rank) == 1);
        for (int const other : members) CHECK(grid.members(kind, other) == members);
        groups.insert(members);
      }
      std::vector<int> all;
      for (auto const& members : groups) all.insert(all.end(), members.begin(), members.end());
      std::ranges::sort(all);
      for (int rank = 0; rank < grid.ranks(); ++rank) CHECK(all.at(static_cast<std::size_t>(rank)) == rank);
      CHECK(static_cast<int>(all.size()) == grid.ranks());
    }
  }
}

TEST_CASE("neighbours in a tensor group are neighbours in rank") {
  for (GridShape const& grid : grids()) {
    for (int rank = 0; rank < grid.ranks(); ++rank) {
      auto const members = grid.members(GroupKind::tensor, rank);
      CHECK(members.front() % grid.tensor == 0);
      CHECK(members.back() - members.front() + 1 == static_cast<int>(members.size()));
    }
  }
}

TEST_CASE("groups of a grid that is written out") {
  GridShape const grid = grid_shape({.tensor = 2, .context = 3}, 12);
  CHECK(grid.data == 2);
  CHECK(grid.members(GroupKind::tensor, 9) == std::vector{8, 9});
  CHECK(grid.members(GroupKind::context, 9) == std::vector{7, 9, 11});
  CHECK(grid.members(GroupKind::state, 9) == std::vector{1, 3, 5, 7, 9, 11});
}

TEST_CASE("ranks that cannot be cut so are refused in words") {
  auto const message = message_of<InputError>([] { grid_shape({.tensor = 2, .context = 3}, 8); });
  CHECK(contains(message, {"8 ranks", "groups of 6", "parallel.tensor 2", "parallel.context 3", "a multiple"}));
}
