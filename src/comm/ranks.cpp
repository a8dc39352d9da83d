#include "comm/ranks.hpp"

#include "comm/tree_sum.hpp"

#include <algorithm>
#include <cstring>

namespace kozero {

namespace {

// Texts travel in whole words.
std::size_t whole_words(std::int64_t bytes) { return static_cast<std::size_t>((bytes + 7) / 8 * 8); }

std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

} // namespace

void Ranks::exchange(std::span<Outgoing const> sends, std::span<Incoming const> receives) {
  for (auto const& message : receives) {
    traffic_.add(Traffic::control, static_cast<std::int64_t>(message.bytes.size()), 1);
  }
  exchange_messages(sends, receives);
}

std::span<std::byte const> Ranks::gather_bytes(std::span<std::byte const> mine) {
  gathered_.resize(mine.size() * static_cast<std::size_t>(size()));
  std::ranges::copy(mine, gathered_.begin() + rank() * std::ssize(mine));
  traffic_.add(Traffic::control, std::ssize(gathered_) - std::ssize(mine), 1);
  gather_parts(gathered_);
  return gathered_;
}

template <class T>
void Ranks::sum_values(std::span<T> values) {
  auto const all = gather_bytes(std::as_bytes(values));
  addends_.clear();
  for (int r = 0; r < size(); ++r) addends_.push_back(all.data() + static_cast<std::size_t>(r) * values.size_bytes());
  tree_sum(dtype_of<T>, addends_, std::ssize(values), values.data());
}

void Ranks::sum(std::span<double> values) { sum_values(values); }
void Ranks::sum(std::span<std::int64_t> values) { sum_values(values); }

std::vector<std::int64_t> Ranks::gather(std::int64_t value) {
  auto const all = gather_bytes(std::as_bytes(std::span(&value, 1)));
  std::vector<std::int64_t> values(static_cast<std::size_t>(size()));
  std::memcpy(values.data(), all.data(), all.size());
  return values;
}

std::vector<std::string> Ranks::gather(std::string const& text) {
  auto const lengths = gather(std::ssize(text));
  std::string padded = text;
  padded.resize(whole_words(*std::ranges::max_element(lengths)));
  auto const all = gather_bytes(bytes_of(padded));
  std::vector<std::string> texts;
  auto const* at = reinterpret_cast<char const*>(all.data());
  for (std::int64_t const length : lengths) {
    texts.emplace_back(at, static_cast<std::size_t>(length));
    at += padded.size();
  }
  return texts;
}

void Ranks::broadcast(std::string& text, int root) {
  std::int64_t length = std::ssize(text);
  auto const length_bytes = std::as_writable_bytes(std::span(&length, 1));
  broadcast_bytes(length_bytes, root);
  text.resize(static_cast<std::size_t>(length));
  broadcast_bytes(bytes_of(text), root);
  if (rank() != root) traffic_.add(Traffic::control, std::ssize(length_bytes) + length, 1);
}

} // namespace kozero
