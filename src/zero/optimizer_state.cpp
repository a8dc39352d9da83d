#include "zero/optimizer_state.hpp"

#include "core/launch.hpp"
#include "core/rng.hpp"

#include <algorithm>

namespace kozero {

namespace {

constexpr std::int64_t staged_elements = 1 << 20; // of initial values, on their way to a device

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

/// master[i] of elements piece.begin + i of a block, in memory that the host reaches.
void fill_master(float* master, BlockLayout const& block, Interval piece, std::int64_t seed) {
  for (auto const& tensor : block.tensors()) {
    Interval const part = intersect(piece, tensor.interval());
    RngKey const stream{static_cast<std::uint64_t>(seed), RngPurpose::initialise, 0,
                        static_cast<std::uint32_t>(tensor.spec.init.stream)};
    launch(HostLane(), "kozero::initialise", Range{part.size()}, [&](std::int64_t i) {
      master[part.begin + i - piece.begin] = initial_value(tensor.spec, stream, part.begin + i - tensor.offset);
    });
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

void OptimizerState::initialise(Lane const& lane, ModelLayout const& layout, std::int64_t seed) {
  std::vector<float> staging;
  for (PieceState const& state : pieces_) {
    auto const& block = layout[static_cast<std::size_t>(state.piece.block)];
    Interval const interval = state.piece.interval;
    if (state.piece.space == Space::host) {
      fill_master(state.master.data(), block, interval, seed);
      fill(HostLane(), on_host(state.m.data()), 0.0f, interval.size());
      fill(HostLane(), on_host(state.v.data()), 0.0f, interval.size());
      continue;
    }
    fill(lane, on_device(state.m.data()), 0.0f, interval.size());
    fill(lane, on_device(state.v.data()), 0.0f, interval.size());
    if (host_reaches_device) {
      fill_master(state.master.data(), block, interval, seed);
      continue;
    }
    staging.resize(static_cast<std::size_t>(std::min(staged_elements, interval.size())));
    for (std::int64_t at = interval.begin; at < interval.end; at += staged_elements) {
      Interval const part{at, std::min(at + staged_elements, interval.end)};
      fill_master(staging.data(), block, part, seed);
      copy(lane, on_device(state.master.data() + (at - interval.begin)), on_host(staging.data()), part.size());
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

} // namespace kozero
