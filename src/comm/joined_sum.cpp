#include "comm/joined_sum.hpp"

#include <algorithm>
#include <cstring>

namespace kozero {

namespace {

template <int width>
using Parts = std::vector<typename AlignedSum<width>::Part>;

/// Of each sum the number of its parts, then these.
template <int width>
std::string message_of(std::vector<AlignedSum<width>> const& sums) {
  std::string message;
  auto const append = [&](void const* data, std::size_t bytes) {
    message.append(static_cast<char const*>(data), bytes);
  };
  for (auto const& sum : sums) {
    auto const count = static_cast<std::int64_t>(sum.parts().size());
    append(&count, sizeof count);
    append(sum.parts().data(), sum.parts().size() * sizeof(typename AlignedSum<width>::Part));
  }
  return message;
}

/// Adds each sum's parts in `message` to `parts`.
template <int width>
void read_message(std::string const& message, std::vector<Parts<width>>& parts) {
  char const* at = message.data();
  auto const take = [&](void* to, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, at, bytes);
    at += bytes;
  };
  for (Parts<width>& of_sum : parts) {
    std::int64_t count = 0;
    take(&count, sizeof count);
    std::size_t const before = of_sum.size();
    of_sum.resize(before + static_cast<std::size_t>(count));
    take(of_sum.data() + before, static_cast<std::size_t>(count) * sizeof(typename AlignedSum<width>::Part));
  }
}

} // namespace

template <int width>
std::vector<typename AlignedSum<width>::Value> joined_totals(Communicator& comm,
                                                             std::vector<AlignedSum<width>> const& sums) {
  std::vector<typename AlignedSum<width>::Value> totals;
  if (comm.size() == 1) {
    for (auto const& sum : sums) totals.push_back(sum.total());
    return totals;
  }
  std::vector<Parts<width>> parts(sums.size());
  for (std::string const& message : comm.gather(message_of(sums))) read_message<width>(message, parts);
  for (std::size_t s = 0; s < sums.size(); ++s) {
    std::sort(parts[s].begin(), parts[s].end(),
              [](auto const& a, auto const& b) { return a.node.begin() < b.node.begin(); });
    AlignedSum<width> whole(sums[s].leaves());
    for (auto const& part : parts[s]) whole.add(part.node, part.value);
    totals.push_back(whole.total());
  }
  return totals;
}

template std::vector<AlignedSum<1>::Value> joined_totals<1>(Communicator&, std::vector<AlignedSum<1>> const&);
template std::vector<AlignedSum<8>::Value> joined_totals<8>(Communicator&, std::vector<AlignedSum<8>> const&);

} // namespace kozero
