#include "zero/grad_shards.hpp"

#include "kernels/flat.hpp"

#include <algorithm>

namespace kozero {

namespace {

constexpr std::int64_t arriving_elements = 1 << 19; // added on the host at a time, while as many are coming

} // namespace

template <class G>
GradShards<G>::GradShards(Plan const& plan, std::vector<Piece> pieces, Deliveries deliveries, Ledger& ledger,
                          LinkTraffic& traffic)
    : pieces_(std::move(pieces)), traffic_(traffic), arrays_(plan.delays() ? 2 : 1) {
  bool const all = deliveries == Deliveries::several || plan.delays();
  std::int64_t largest_on_host = 0;
  for (auto const& piece : pieces_) {
    has_array_.push_back(all || piece.space == Space::host);
    if (piece.space == Space::host) largest_on_host = std::max(largest_on_host, piece.interval.size());
  }
  on_host_ = largest_on_host > 0;
  for (auto& set : arrays_) set = make_arrays("gradient shard", ledger);
  for (int level = 1; level < most_partial_sums(plan.sums(), plan.reductions()); ++level) {
    partial_.push_back(make_arrays("partial sum of gradients", ledger));
  }
  if (deliveries == Deliveries::several) {
    for (auto& part : arriving_) {
      part.memory = {ledger, Category::staging, "gradients arriving", std::min(largest_on_host, arriving_elements),
                     PinnedBuffer<G>::Init::none};
    }
  }
}

template <class G>
typename GradShards<G>::Arrays GradShards<G>::make_arrays(char const* label, Ledger& ledger) const {
  Arrays arrays;
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    arrays.emplace_back(pieces_[p].space == Space::host ? Space::pinned : Space::device, ledger, Category::gradients,
                        label, has_array_[p] ? pieces_[p].interval.size() : 0);
  }
  return arrays;
}

template <class G>
void GradShards<G>::deliver(Lane const& lane, int number, G const* block, SumStep step) {
  for (Piece const& piece : of_block(pieces_, number, &Piece::block)) { // they are in block order
    auto const p = static_cast<int>(&piece - pieces_.data());
    if (has_array_[p]) deliver_piece(lane, p, block + piece.interval.begin, step);
  }
}

template <class G>
void GradShards<G>::deliver_piece(Lane const& lane, int piece, G const* reduced, SumStep step) {
  if (pieces_[piece].interval.empty()) return;
  bool const on_host = pieces_[piece].space == Space::host;
  if (on_host) order_after(down_, lane);
  if (step.joins == 0) {
    set(lane, piece, step.held, reduced);
  } else if (on_host) {
    add_on_host(piece, reduced, step);
  } else {
    add_part(lane, piece, {0, pieces_[piece].interval.size()}, reduced, step);
  }
}

/// A partial sum of its own.
template <class G>
void GradShards<G>::set(Lane const& lane, int piece, int level, G const* reduced) {
  std::int64_t const count = pieces_[piece].interval.size();
  if (pieces_[piece].space == Space::host) {
    copy_down(down_, sum(level, piece), reduced, count, traffic_);
  } else {
    copy(lane, on_device(sum(level, piece)), on_device(reduced), count);
  }
}

/// A part of a piece, of which `reduced` is the addend, is added to the last partial sums.
template <class G>
template <class AnyLane>
void GradShards<G>::add_part(AnyLane const& lane, int piece, Interval part, G const* reduced, SumStep step) const {
  G const* addend = reduced;
  for (int level = step.held - 1; level >= step.held - step.joins; --level) {
    G* const to = sum(level, piece) + part.begin;
    accumulate(lane, to, addend, part.size());
    addend = to;
  }
}

template <class G>
void GradShards<G>::add_on_host(int piece, G const* reduced, SumStep step) {
  std::int64_t const count = pieces_[piece].interval.size();
  std::int64_t const length = arriving_[0].memory.size();
  auto const part_of = [&](std::int64_t part) { return Interval{part * length, std::min((part + 1) * length, count)}; };
  std::int64_t const parts = (count + length - 1) / length;
  auto const send = [&](std::int64_t part) {
    auto& [memory, came] = arriving_[part % 2];
    copy_down(down_, memory.data(), reduced + part_of(part).begin, part_of(part).size(), traffic_);
    came.record(down_);
  };
  send(0);
  for (std::int64_t part = 0; part < parts; ++part) {
    if (part + 1 < parts) send(part + 1);
    auto const& [memory, came] = arriving_[part % 2];
    came.wait("gradients arriving"); // and with it all that came before, the sums so far
    HostSpan const span("add gradients");
    add_part(HostLane(), piece, part_of(part), memory.data(), step);
  }
}

template <class G>
void GradShards<G>::wait() const {
  if (on_host_) down_.fence("gradients");
}

template class GradShards<float>;
template class GradShards<bf16>;
template class GradShards<fp16>;

} // namespace kozero
