#include "comm/joined_sum.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace kozero {

/// Into the message, of each sum the number of its nodes, then these.
template <int width>
void SumJoiner<width>::write(std::span<AlignedSum<width> const> sums) {
  message_.clear();
  auto const append = [&](void const* data, std::size_t bytes) {
    message_.append(static_cast<char const*>(data), bytes);
  };
  for (auto const& sum : sums) {
    auto const count = static_cast<std::int64_t>(sum.nodes().size());
    append(&count, sizeof count);
    append(sum.nodes().data(), sum.nodes().size() * sizeof nodes_[0]);
  }
}

/// Adds to each sum its nodes in the message, before, after or between its own.
template <int width>
void SumJoiner<width>::add(std::span<AlignedSum<width>> sums) {
  char const* at = message_.data();
  auto const take = [&](void* to, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, at, bytes);
    at += bytes;
  };
  for (auto& sum : sums) {
    std::int64_t count = 0;
    take(&count, sizeof count);
    std::size_t const own = sum.nodes().size();
    nodes_ = sum.nodes();
    nodes_.resize(own + static_cast<std::size_t>(count));
    take(nodes_.data() + own, static_cast<std::size_t>(count) * sizeof nodes_[0]);
    std::ranges::sort(nodes_, {}, [](auto const& n) { return n.node.begin(); });
    sum.clear();
    for (auto const& [node, value] : nodes_) sum.add(node, value);
  }
}

template <int width>
void SumJoiner<width>::send(Ranks& ranks, int to) const {
  auto const length = static_cast<std::int64_t>(message_.size());
  std::array const messages = {Outgoing{to, std::as_bytes(std::span(&length, 1))},
                               Outgoing{to, std::as_bytes(std::span(message_))}};
  ranks.exchange(messages, {});
}

template <int width>
void SumJoiner<width>::receive(Ranks& ranks, int from) {
  std::int64_t length = 0;
  std::array const first = {Incoming{from, std::as_writable_bytes(std::span(&length, 1))}};
  ranks.exchange({}, first);
  message_.resize(static_cast<std::size_t>(length));
  std::array const second = {Incoming{from, std::as_writable_bytes(std::span(message_))}};
  ranks.exchange({}, second);
}

/// Along a binary tree of the ranks, whose neighbours often have neighbouring leaves, to rank 0, who tells all.
template <int width>
void SumJoiner<width>::join(Ranks& ranks, std::span<AlignedSum<width>> sums) {
  if (ranks.size() == 1) return;
  for (int step = 1; step < ranks.size(); step *= 2) {
    if (ranks.rank() % (2 * step) != 0) {
      write(sums);
      send(ranks, ranks.rank() - step);
      break;
    }
    if (ranks.rank() + step >= ranks.size()) continue;
    receive(ranks, ranks.rank() + step);
    add(sums);
  }
  write(sums);
  ranks.broadcast(message_, 0);
  for (auto& sum : sums) sum.clear();
  add(sums);
}

template class SumJoiner<1>;
template class SumJoiner<8>;

} // namespace kozero
