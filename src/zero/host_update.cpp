#include "zero/host_update.hpp"

#include "kernels/flat.hpp"

#include <algorithm>

namespace kozero {

namespace {

constexpr std::int64_t tile_elements = 1 << 20; // long enough for a copy at full speed, short enough to overlap

} // namespace

template <class T>
HostUpdate<T>::HostUpdate(Plan const& plan, OptimizerState const& state, Ledger& ledger, LinkTraffic& traffic)
    : state_(state), traffic_(traffic) {
  std::int64_t largest = 0;
  for (std::size_t p = 0; p < state.pieces().size(); ++p) {
    Piece const& piece = state.pieces()[p].piece;
    std::int64_t const size = piece.space == Space::host ? piece.interval.size() : 0;
    for (std::int64_t begin = 0; begin < size; begin += tile_elements) {
      tiles_.push_back({static_cast<int>(p), begin, std::min(tile_elements, size - begin)});
      largest = std::max(largest, tiles_.back().count);
    }
    if (plan.delays()) {
      late_.emplace_back(ledger, Category::parameters, "updated parameters", size, PinnedBuffer<T>::Init::none);
    }
  }
  for (auto& [memory, copied] : staging_) {
    memory = {ledger, Category::staging, "updated parameters", largest, PinnedBuffer<T>::Init::none};
  }
}

/// produce(tile, out) for every tile; `out` goes to the device while the next one is made. The lane is ordered before
/// and after it.
template <class T>
template <class Produce>
void HostUpdate<T>::stream(Lane const& lane, ParamStore<T>& params, Produce const& produce) {
  if (tiles_.empty()) return;
  order_after(up_, lane); // which may read what is overwritten
  for (std::size_t t = 0; t < tiles_.size(); ++t) {
    Tile const& tile = tiles_[t];
    auto& [memory, copied] = staging_[t % 2];
    copied.wait("updated parameters"); // the tile before the last one has left this memory
    produce(tile, memory.data());
    copy_up(up_, params.updated(state_.pieces()[tile.piece].piece) + tile.begin, memory.data(), tile.count, traffic_);
    copied.record(up_);
  }
  order_after(lane, up_);
}

template <class T>
void HostUpdate<T>::publish_master(Lane const& lane, ParamStore<T>& params) {
  stream(lane, params, [&](Tile const& tile, T* out) {
    convert(HostLane(), out, state_.pieces()[tile.piece].master.data() + tile.begin, tile.count);
  });
}

/// `gradient` is of the piece's first element.
template <class T>
void HostUpdate<T>::compute(Tile const& tile, AdamWScalars const& scalars, void const* gradient, DType type,
                            T* out) const {
  HostSpan const span("adamw tile");
  auto const& state = state_.pieces()[tile.piece];
  AdamWShard<T> const shard{
      .count = tile.count,
      .decay_count = std::clamp<std::int64_t>(state.decay_count - tile.begin, 0, tile.count),
      .master = state.master.data() + tile.begin,
      .m = state.m.data() + tile.begin,
      .v = state.v.data() + tile.begin,
      .gradient = static_cast<unsigned char const*>(gradient) + tile.begin * size_of(type),
      .gradient_type = type,
      .parameter = out,
  };
  adamw_step(HostLane(), shard, scalars);
}

template <class T>
void HostUpdate<T>::run(Lane const& lane, AdamWScalars const& scalars, GradStore const& grads, ParamStore<T>& params) {
  stream(lane, params,
         [&](Tile const& tile, T* out) { compute(tile, scalars, grads.reduced(tile.piece), grads.type(), out); });
}

template <class T>
void HostUpdate<T>::begin(AdamWScalars const& scalars) {
  scalars_ = scalars;
  next_ = 0;
  late_copied_.wait("updated parameters"); // those of the update before, a batch ago
}

template <class T>
void HostUpdate<T>::advance(GradStore const& grads) {
  Tile const& tile = tiles_[next_++];
  compute(tile, *scalars_, grads.former(tile.piece), grads.type(), late_[tile.piece].data() + tile.begin);
}

template <class T>
void HostUpdate<T>::land(Lane const& lane, GradStore const& grads, ParamStore<T>& params) {
  while (left() > 0) advance(grads);
  for (std::size_t p = 0; p < late_.size(); ++p) {
    if (late_[p].size() == 0) continue;
    copy_up(lane, params.updated(state_.pieces()[p].piece), late_[p].data(), late_[p].size(), traffic_);
  }
  late_copied_.record(lane);
  scalars_.reset();
}

template class HostUpdate<float>;
template class HostUpdate<bf16>;
template class HostUpdate<fp16>;

} // namespace kozero
