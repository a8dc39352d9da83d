#include "zero/optimizer_state.hpp"

#include "core/rng.hpp"
#include "core/views.hpp"

#include <algorithm>

namespace kozero {

namespace {

using HostView = Kokkos::View<float*, Kokkos::LayoutRight, HostMemory, Unmanaged>;

HostView host_view(float* data, std::int64_t count) { return HostView(data, static_cast<std::size_t>(count)); }

float initial_value(TensorSpec const& tensor, RngKey const& stream, std::int64_t element) {
  switch (tensor.init.kind) {
  case TensorInit::Kind::zero: return 0.0f;
  case TensorInit::Kind::one: return 1.0f;
  case TensorInit::Kind::normal: {
    auto const number = static_cast<std::uint64_t>(tensor.random_number(element));
    return static_cast<float>(tensor.init.deviation * random_normal(stream, number));
  }
  }
  return 0.0f;
}

/// master[i] of elements piece.begin + i of a block, in host memory.
void fill_master(HostView const& master, BlockLayout const& block, Interval piece, std::int64_t seed) {
  for (auto const& tensor : block.tensors()) {
    Interval const part = intersect(piece, tensor.interval());
    RngKey const stream{static_cast<std::uint64_t>(seed), RngPurpose::initialise, 0,
                        static_cast<std::uint32_t>(tensor.spec.init.stream)};
    Kokkos::parallel_for(
        "kozero::initialise", Kokkos::RangePolicy<HostExec>(part.begin, part.end),
        [&](std::int64_t i) { master(i - piece.begin) = initial_value(tensor.spec, stream, i - tensor.offset); });
    HostExec().fence();
  }
}

} // namespace

float* OptimizerState::Part::data(StateKind kind) const {
  switch (kind) {
  case StateKind::master: return master.data();
  case StateKind::m: return m.data();
  case StateKind::v: return v.data();
  case StateKind::gradient: break;
  }
  return nullptr;
}

OptimizerState::OptimizerState(Plan const& plan, ModelLayout const& layout, MasterOf const& master_of, Ledger& ledger) {
  for (Piece const& piece : plan.pieces(layout)) {
    auto const& block = layout[static_cast<std::size_t>(piece.block)];
    Part part;
    part.piece = piece;
    part.decay_count = intersect(piece.interval, {0, block.decay_end()}).size();
    auto const array = [&](Category category) {
      return PlacedBuffer<float>(piece.space, ledger, category, block.name(), piece.interval.size());
    };
    if (master_of && piece.space == Space::device) { // a plan's parameters have no address
      part.master = PlacedBuffer<float>::borrowed(ledger.allocates() ? master_of(piece) : nullptr);
    } else {
      part.master = array(Category::master);
    }
    part.m = array(Category::first_moment);
    part.v = array(Category::second_moment);
    parts_.push_back(std::move(part));
  }
}

void OptimizerState::initialise(ModelLayout const& layout, std::int64_t seed) {
  for (Part const& part : parts_) {
    auto const& block = layout[static_cast<std::size_t>(part.piece.block)];
    Interval const interval = part.piece.interval;
    if (part.piece.space == Space::host) {
      fill_master(host_view(part.master.data(), interval.size()), block, interval, seed);
      Kokkos::deep_copy(host_view(part.m.data(), interval.size()), 0.0f);
      Kokkos::deep_copy(host_view(part.v.data(), interval.size()), 0.0f);
    } else {
      Vec<float> const device = make_vec(part.master.data(), interval.size());
      auto const master = Kokkos::create_mirror_view(device);
      fill_master(host_view(master.data(), interval.size()), block, interval, seed);
      Kokkos::deep_copy(device, master);
      Kokkos::deep_copy(make_vec(part.m.data(), interval.size()), 0.0f);
      Kokkos::deep_copy(make_vec(part.v.data(), interval.size()), 0.0f);
    }
  }
}

std::vector<HeldState> OptimizerState::held() const {
  std::vector<HeldState> held;
  for (Part const& part : parts_) {
    for (StateKind const kind : {StateKind::master, StateKind::m, StateKind::v}) {
      held.push_back({part.piece.block, part.piece.interval, kind, DType::f32, part.data(kind), part.piece.space});
    }
  }
  return held;
}

void OptimizerState::copy_to_host(Lane const& lane, int block, StateKind kind, Interval interval, float* to) const {
  auto const block_of = [](Part const& part) { return part.piece.block; };
  for (Part const& part : std::ranges::equal_range(parts_, block, {}, block_of)) { // they are in block order
    Interval const common = intersect(interval, part.piece.interval);
    if (common.empty()) continue;
    float* const from = part.data(kind) + (common.begin - part.piece.interval.begin);
    HostView const target = host_view(to + (common.begin - interval.begin), common.size());
    if (part.piece.space == Space::host) {
      Kokkos::deep_copy(target, host_view(from, common.size()));
    } else {
      Kokkos::deep_copy(lane.exec(), target, make_vec(from, common.size()));
      lane.fence();
    }
  }
}

} // namespace kozero
