#include "comm/grid_shape.hpp"

#include "core/error.hpp"

namespace kozero {

GridShape::Place GridShape::place_of(int rank) const {
  return {.data = rank / (tensor * context), .context = rank / tensor % context, .tensor = rank % tensor};
}

int GridShape::rank_at(Place const& place) const {
  return (place.data * context + place.context) * tensor + place.tensor;
}

std::vector<int> GridShape::members(GroupKind kind, int rank) const {
  Place const self = place_of(rank);
  auto const belongs = [&](Place const& other) {
    switch (kind) {
    case GroupKind::tensor: return other.data == self.data && other.context == self.context;
    case GroupKind::context: return other.data == self.data && other.tensor == self.tensor;
    case GroupKind::state: return other.tensor == self.tensor;
    case GroupKind::world: return true;
    }
    return false;
  };
  std::vector<int> members;
  for (int other = 0; other < ranks(); ++other) {
    if (belongs(place_of(other))) members.push_back(other);
  }
  return members;
}

GridShape grid_shape(ParallelConfig const& parallel, int ranks) {
  std::int64_t const share = parallel.tensor * parallel.context;
  if (ranks % share != 0) {
    throw InputError(fmt::format("{} ranks cannot be cut into groups of {} (parallel.tensor {} × parallel.context {}); "
                                 "start a multiple of that, or change the two keys",
                                 ranks, share, parallel.tensor, parallel.context));
  }
  return {.data = static_cast<int>(ranks / share),
          .context = static_cast<int>(parallel.context),
          .tensor = static_cast<int>(parallel.tensor)};
}

} // namespace kozero
