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

float* OptimizerState::PieceState::data(StateKind kind) const {
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
    PieceState state;
    state.piece = piece;
    state.decay_count = intersect(piece.interval, {0, block.decay_end()}).size();
    auto const array = [&](Category category) {
      return PlacedBuffer<float>(piece.space, ledger, category, block.name(), piece.interval.size());
    };
    if (master_of && piece.space == Space::device) { // a plan's parameters have no address
      state.master = PlacedBuffer<float>::borrowed(ledger.allocates() ? master_of(piece) : nullptr);
    } else {
      state.master = array(Category::master);
    }
    state.m = array(Category::first_moment);
    state.v = array(Category::second_moment);
    pieces_.push_back(std::move(state));
  }
}

void OptimizerState::initialise(ModelLayout const& layout, std::int64_t seed) {
  for (PieceState const& state : pieces_) {
    auto const& block = layout[static_cast<std::size_t>(state.piece.block)];
    Interval const interval = state.piece.interval;
    if (state.piece.space == Space::host) {
      fill_master(host_view(state.master.data(), interval.size()), block, interval, seed);
      Kokkos::deep_copy(host_view(state.m.data(), interval.size()), 0.0f);
      Kokkos::deep_copy(host_view(state.v.data(), interval.size()), 0.0f);
    } else {
      Vec<float> const device = make_vec(state.master.data(), interval.size());
      auto const master = Kokkos::create_mirror_view(device);
      fill_master(host_view(master.data(), interval.size()), block, interval, seed);
      Kokkos::deep_copy(device, master);
      Kokkos::deep_copy(make_vec(state.m.data(), interval.size()), 0.0f);
      Kokkos::deep_copy(make_vec(state.v.data(), interval.size()), 0.0f);
    }
  }
}

std::vector<HeldState> OptimizerState::held() const {
  std::vector<HeldState> held;
  for (PieceState const& state : pieces_) {
    for (StateKind const kind : {StateKind::master, StateKind::m, StateKind::v}) {
      held.push_back({state.piece.block, state.piece.interval, kind, DType::f32, state.data(kind), state.piece.space});
    }
  }
  return held;
}

void OptimizerState::copy_to_host(Lane const& lane, int block, StateKind kind, Interval interval, float* to) const {
  auto const block_of = [](PieceState const& state) { return state.piece.block; };
  for (PieceState const& state : of_block(pieces_, block, block_of)) { // they are in block order
    Interval const common = intersect(interval, state.piece.interval);
    if (common.empty()) continue;
    float* const from = state.data(kind) + (common.begin - state.piece.interval.begin);
    HostView const target = host_view(to + (common.begin - interval.begin), common.size());
    if (state.piece.space == Space::host) {
      Kokkos::deep_copy(target, host_view(from, common.size()));
    } else {
      Kokkos::deep_copy(lane.exec(), target, make_vec(from, common.size()));
      lane.fence();
    }
  }
}

} // namespace kozero
