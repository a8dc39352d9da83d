#include "comm/communicator.hpp"

#include "comm/tree_sum.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

namespace kozero {

void Pending::wait(Lane const& lane) {
  if (!work_) return;
  std::unique_ptr<Work> const work = std::move(work_);
  work->finish(lane);
}

Pending::~Pending() {
  if (std::uncaught_exceptions() == 0) wait(Lane());
}

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this == &other) return *this;
  wait(Lane());
  work_ = std::move(other.work_);
  return *this;
}

namespace {

// All ranks' copies of n bytes, by rank; n is a multiple of the partition's alignment, so that each is one shard.
std::vector<std::byte> gather_bytes(Communicator& comm, void const* mine, std::int64_t n) {
  Partition const partition(n * comm.size(), comm.size());
  std::vector<std::byte> all(static_cast<std::size_t>(partition.size()));
  if (n > 0) std::memcpy(all.data() + partition.shard(comm.rank()).begin, mine, static_cast<std::size_t>(n));
  Lane const lane;
  comm.all_gather(lane, {all.data(), partition.size(), DType::u8, Space::host}, partition, Traffic::control).wait(lane);
  return all;
}

template <class T>
void sum_values(Communicator& comm, std::span<T> values) {
  static_assert(sizeof(T) == Partition::alignment);
  auto const bytes = static_cast<std::int64_t>(values.size_bytes());
  std::vector<std::byte> const all = gather_bytes(comm, values.data(), bytes);
  std::vector<void const*> pieces;
  for (int rank = 0; rank < comm.size(); ++rank) pieces.push_back(all.data() + rank * bytes);
  tree_sum(dtype_of<T>, pieces, static_cast<std::int64_t>(values.size()), values.data());
}

} // namespace

void Communicator::sum(std::span<double> values) { sum_values(*this, values); }
void Communicator::sum(std::span<std::int64_t> values) { sum_values(*this, values); }

std::vector<std::int64_t> Communicator::gather(std::int64_t value) {
  std::vector<std::byte> const all = gather_bytes(*this, &value, sizeof value);
  std::vector<std::int64_t> values(static_cast<std::size_t>(size()));
  std::memcpy(values.data(), all.data(), all.size());
  return values;
}

std::vector<std::string> Communicator::gather(std::string const& text) {
  std::vector<std::int64_t> const lengths = gather(static_cast<std::int64_t>(text.size()));
  std::int64_t const longest = *std::max_element(lengths.begin(), lengths.end());
  std::int64_t const room = (longest + Partition::alignment - 1) / Partition::alignment * Partition::alignment;
  std::string padded = text;
  padded.resize(static_cast<std::size_t>(room));
  std::vector<std::byte> const all = gather_bytes(*this, padded.data(), room);
  std::vector<std::string> texts;
  for (int r = 0; r < size(); ++r) {
    texts.emplace_back(reinterpret_cast<char const*>(all.data()) + r * room, static_cast<std::size_t>(lengths[r]));
  }
  return texts;
}

void Communicator::broadcast(std::string& text, int root) {
  Lane const lane;
  auto length = static_cast<std::int64_t>(text.size());
  broadcast(lane, {&length, sizeof length, DType::u8, Space::host}, root, Traffic::control).wait(lane);
  text.resize(static_cast<std::size_t>(length));
  broadcast(lane, {text.data(), length, DType::u8, Space::host}, root, Traffic::control).wait(lane);
}

} // namespace kozero
