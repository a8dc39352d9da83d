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
  bool const all = deliveries == Deliveries::each_micro_batch || plan.delays();
  for (auto const& piece : pieces_) has_array_.push_back(all || piece.space == Space::host);
  std::int64_t largest_on_host = 0;
  for (auto& set : arrays_) {
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      bool const on_host = pieces_[p].space == Space::host;
      std::int64_t const count = has_array_[p] ? pieces_[p].interval.size() : 0;
      set.emplace_back(on_host ? Space::pinned : Space::device, ledger, Category::gradients, "gradient shard", count);
      if (on_host) largest_on_host = std::max(largest_on_host, count);
      on_host_ = on_host_ || (on_host && count > 0);
    }
  }
  if (deliveries == Deliveries::each_micro_batch) {
    for (auto& part : arriving_) {
      part.memory = {ledger, Category::staging, "gradients arriving", std::min(largest_on_host, arriving_elements),
                     PinnedBuffer<G>::Init::none};
    }
  }
}

template <class G>
void GradShards<G>::deliver(Lane const& lane, int number, G const* block, bool first) {
  for (Piece const& piece : of_block(pieces_, number, &Piece::block)) { // they are in block order
    auto const p = static_cast<int>(&piece - pieces_.data());
    if (has_array_[p]) deliver_piece(lane, p, block + piece.interval.begin, first);
  }
}

template <class G>
void GradShards<G>::deliver_piece(Lane const& lane, int piece, G const* reduced, bool first) {
  std::int64_t const count = pieces_[piece].interval.size();
  if (count == 0) return;
  G* const sum = present(piece);
  if (pieces_[piece].space == Space::host) {
    order_after(down_, lane);
    if (first) {
      copy_down(down_, sum, reduced, count, traffic_);
    } else {
      add_on_host(sum, reduced, count);
    }
  } else if (first) {
    copy(lane, on_device(sum), on_device(reduced), count);
  } else {
    accumulate(lane, sum, reduced, count);
  }
}

template <class G>
void GradShards<G>::add_on_host(G* sum, G const* reduced, std::int64_t count) {
  auto const length = arriving_[0].memory.size();
  auto const part_of = [&](std::int64_t part) { return std::min(length, count - part * length); };
  std::int64_t const parts = (count + length - 1) / length;
  auto const send = [&](std::int64_t part) {
    auto& [memory, came] = arriving_[part % 2];
    copy_down(down_, memory.data(), reduced + part * length, part_of(part), traffic_);
    came.record(down_);
  };
  send(0);
  for (std::int64_t part = 0; part < parts; ++part) {
    if (part + 1 < parts) send(part + 1);
    auto const& [memory, came] = arriving_[part % 2];
    came.wait("gradients arriving"); // and with it all that came before, the sum so far
    HostSpan const span("add gradients");
    accumulate(HostLane(), sum + part * length, memory.data(), part_of(part));
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
