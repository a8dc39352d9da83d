#include "zero/optimizer_state.hpp"

#include "core/rng.hpp"
#include "core/views.hpp"

#include <algorithm>

namespace kozero {

OptimizerState::OptimizerState(Plan const& plan, ModelLayout const& layout, Ledger& ledger) {
  for (auto const& layout_block : layout) {
    Partition const partition = plan.partition(layout_block.size());
    bool const whole = plan.optimizer() == Plan::Keep::whole;
    std::int64_t const capacity = whole ? partition.size() : partition.shard_capacity();
    Block block;
    block.interval = plan.updated(partition);
    block.decay_count = intersect(block.interval, {0, layout_block.decay_end()}).size();
    auto const none = DeviceBuffer<float>::Init::none;
    block.master = {ledger, Category::master, layout_block.name(), capacity, none};
    block.m = {ledger, Category::first_moment, layout_block.name(), capacity, none};
    block.v = {ledger, Category::second_moment, layout_block.name(), capacity, none};
    blocks_.push_back(std::move(block));
  }
}

namespace {

float initial_value(PlacedTensor const& tensor, RngKey const& key, std::int64_t element) {
  switch (tensor.spec.init.kind) {
  case TensorInit::Kind::zero: return 0.0f;
  case TensorInit::Kind::one: return 1.0f;
  case TensorInit::Kind::normal:
    return static_cast<float>(tensor.spec.init.deviation * random_normal(key, static_cast<std::uint64_t>(element)));
  }
  return 0.0f;
}

} // namespace

void OptimizerState::initialise(ModelLayout const& layout, std::int64_t seed) {
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    auto const master = Kokkos::create_mirror_view(block.master.view());
    for (auto const& tensor : layout[b].tensors()) {
      Interval const part = intersect(block.interval, tensor.interval());
      RngKey const key{static_cast<std::uint64_t>(seed), RngPurpose::initialise, 0,
                       static_cast<std::uint32_t>(tensor.number)};
      std::int64_t const first = block.interval.begin;
      Kokkos::parallel_for("kozero::initialise", Kokkos::RangePolicy<HostExec>(part.begin, part.end),
                           [&](std::int64_t i) { master(i - first) = initial_value(tensor, key, i - tensor.offset); });
      HostExec().fence();
    }
    Kokkos::deep_copy(block.master.view(), master);
    Kokkos::deep_copy(make_vec(block.m.data(), block.interval.size()), 0.0f);
    Kokkos::deep_copy(make_vec(block.v.data(), block.interval.size()), 0.0f);
  }
}

std::vector<StateEntry> OptimizerState::entries(ModelLayout const& layout) const {
  std::vector<StateEntry> entries;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Block const& block = blocks_[b];
    for (auto const& tensor : layout[b].tensors()) {
      Interval const part = intersect(tensor.interval(), block.interval);
      Interval const in_tensor{part.begin - tensor.offset, part.end - tensor.offset};
      std::int64_t const at = part.begin - block.interval.begin;
      auto const add = [&](char const* kind, DeviceBuffer<float> const& buffer) {
        float* const data = part.empty() ? nullptr : buffer.data() + at;
        entries.push_back({tensor.spec.name, kind, tensor.spec.shape, in_tensor, DType::f32, data, Space::device});
      };
      add("master", block.master);
      add("m", block.m);
      add("v", block.v);
    }
  }
  return entries;
}

} // namespace kozero
