#include "comm/joined_sum.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace kozero {

namespace {

template <int width>
using Nodes = std::vector<typename AlignedSum<width>::NodeSum>;

/// Of each sum the number of its nodes, then these.
template <int width>
std::string message_of(std::vector<AlignedSum<width>> const& sums) {
  std::string message;
  auto const append = [&](void const* data, std::size_t bytes) {
    message.append(static_cast<char const*>(data), bytes);
  };
  for (auto const& sum : sums) {
    auto const count = static_cast<std::int64_t>(sum.nodes().size());
    append(&count, sizeof count);
    append(sum.nodes().data(), sum.nodes().size() * sizeof(typename AlignedSum<width>::NodeSum));
  }
  return message;
}

/// Adds to each sum its nodes in `message`, before, after or between its own.
template <int width>
void add_message(std::string const& message, std::vector<AlignedSum<width>>& sums) {
  char const* at = message.data();
  auto const take = [&](void* to, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, at, bytes);
    at += bytes;
  };
  for (auto& sum : sums) {
    Nodes<width> nodes = sum.nodes();
    std::size_t const own = nodes.size();
    std::int64_t count = 0;
    take(&count, sizeof count);
    nodes.resize(own + static_cast<std::size_t>(count));
    take(nodes.data() + own, static_cast<std::size_t>(count) * sizeof nodes[0]);
    std::ranges::sort(nodes, {}, [](auto const& n) { return n.node.begin(); });
    sum = AlignedSum<width>(sum.leaves());
    for (auto const& [node, value] : nodes) sum.add(node, value);
  }
}

void send(Ranks& ranks, int to, std::string const& text) {
  auto const length = static_cast<std::int64_t>(text.size());
  std::array const messages = {Outgoing{to, std::as_bytes(std::span(&length, 1))},
                               Outgoing{to, std::as_bytes(std::span(text))}};
  ranks.exchange(messages, {});
}

std::string receive(Ranks& ranks, int from) {
  std::int64_t length = 0;
  std::array const first = {Incoming{from, std::as_writable_bytes(std::span(&length, 1))}};
  ranks.exchange({}, first);
  std::string text(static_cast<std::size_t>(length), '\0');
  std::array const second = {Incoming{from, std::as_writable_bytes(std::span(text))}};
  ranks.exchange({}, second);
  return text;
}

/// On every rank the sums of all ranks: joined along a binary tree of the ranks, whose neighbours often have
/// neighbouring leaves, then told by rank 0.
template <int width>
void join(Ranks& ranks, std::vector<AlignedSum<width>>& sums) {
  for (int step = 1; step < ranks.size(); step *= 2) {
    if (ranks.rank() % (2 * step) != 0) {
      send(ranks, ranks.rank() - step, message_of(sums));
      break;
    }
    if (ranks.rank() + step < ranks.size()) add_message(receive(ranks, ranks.rank() + step), sums);
  }
  std::string message = message_of(sums);
  ranks.broadcast(message, 0);
  for (auto& sum : sums) sum = AlignedSum<width>(sum.leaves());
  add_message(message, sums);
}

} // namespace

template <int width>
std::vector<typename AlignedSum<width>::Value> joined_totals(Ranks& ranks, std::vector<AlignedSum<width>> sums) {
  if (ranks.size() > 1) join(ranks, sums);
  std::vector<typename AlignedSum<width>::Value> totals;
  for (auto const& sum : sums) totals.push_back(sum.total());
  return totals;
}

template std::vector<AlignedSum<1>::Value> joined_totals<1>(Ranks&, std::vector<AlignedSum<1>>);
template std::vector<AlignedSum<8>::Value> joined_totals<8>(Ranks&, std::vector<AlignedSum<8>>);

} // namespace kozero
