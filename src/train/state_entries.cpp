#include "train/state_entries.hpp"

namespace kozero {

namespace {

char const* name_of(StateKind kind) {
  switch (kind) {
  case StateKind::master: return "master";
  case StateKind::m: return "m";
  case StateKind::v: return "v";
  case StateKind::gradient: return "gradient";
  }
  return "?";
}

} // namespace

std::vector<StateEntry> state_entries(ModelLayout const& layout, std::span<HeldState const> held) {
  std::vector<StateEntry> entries;
  for (HeldState const& array : held) {
    for (auto const& tensor : layout[static_cast<std::size_t>(array.block)].tensors()) {
      Interval const part = intersect(tensor.interval(), array.interval);
      Interval const in_tensor =
          part.empty() ? Interval{} : Interval{part.begin - tensor.offset, part.end - tensor.offset};
      void* const first = part.empty() ? nullptr
                                       : static_cast<unsigned char*>(array.data) +
                                             (part.begin - array.interval.begin) * size_of(array.type);
      entries.push_back(
          {tensor.spec.name, name_of(array.kind), tensor.spec.shape, in_tensor, array.type, first, array.space});
    }
  }
  return entries;
}

} // namespace kozero
