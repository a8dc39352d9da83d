#pragma once
// What a collective brings a rank, in pure integers: what the ways of data count and a plan foretells.

#include "layout/partition.hpp"
#include "layout/rank_hosts.hpp"

#include <cstdint>
#include <optional>

namespace kozero {

struct Received {
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::int64_t between_hosts_bytes = 0; // of those, what comes from another host
  friend Received operator+(Received const& a, Received const& b) {
    return {a.elements + b.elements, a.bytes + b.bytes, a.between_hosts_bytes + b.between_hosts_bytes};
  }
  friend Received operator*(std::int64_t times, Received const& a) {
    return {times * a.elements, times * a.bytes, times * a.between_hosts_bytes};
  }
  friend bool operator==(Received const&, Received const&) = default;
};

/// Where ranks are, and how they exchange.
struct ExchangeWay {
  RankHosts hosts;
  /// Of each host, where sums are made within hosts first and then between them (RankHosts::ranks_of_each); none: each
  /// rank hears from every other one.
  std::optional<int> ranks_of_host = {};
};

/// Bytes of an element as it is moved, and of a sum of some of the ranks' addends.
struct ElementBytes {
  std::int64_t moved = 4;
  std::int64_t partial_sum = 4;
};

/// All that the rank has not. In two levels each part is taken to come to a host once, by whichever of its ranks, and
/// an equal share of that counts for each: NCCL chooses how its gather goes, and sends no part to a host twice where it
/// goes along rings.
inline Received received_in_all_gather(Partition const& partition, int rank, ExchangeWay const& way,
                                       ElementBytes const& element) {
  std::int64_t const lacks = partition.size() - partition.shard(rank).size();
  std::int64_t far = 0;
  for (int other = 0; other < partition.ranks(); ++other) {
    if (!way.hosts.together(rank, other)) far += partition.shard(other).size();
  }
  return {lacks, lacks * element.moved, far * element.moved / way.ranks_of_host.value_or(1)};
}

/// The own part from every other rank; in two levels, from each other rank of the host the parts of those that have the
/// same place on their hosts, and from each of these a sum over their host.
inline Received received_in_reduce_scatter(Partition const& partition, int rank, ExchangeWay const& way,
                                           ElementBytes const& element) {
  std::int64_t const own = partition.shard(rank).size();
  if (!way.ranks_of_host) {
    std::int64_t far = 0;
    for (int other = 0; other < partition.ranks(); ++other) far += way.hosts.together(rank, other) ? 0 : 1;
    std::int64_t const all = partition.ranks() - 1;
    return {all * own, all * own * element.moved, far * own * element.moved};
  }
  int const near = *way.ranks_of_host;
  std::int64_t parts = 0;
  for (int alike = rank % near; alike < partition.ranks(); alike += near) parts += partition.shard(alike).size();
  std::int64_t const within = (near - 1) * parts;
  std::int64_t const between = (partition.ranks() / near - 1) * own;
  std::int64_t const between_bytes = between * element.partial_sum;
  return {within + between, within * element.moved + between_bytes, between_bytes};
}

inline Received received_in_all_reduce(Partition const& partition, int rank, ExchangeWay const& way,
                                       ElementBytes const& element) {
  return received_in_reduce_scatter(partition, rank, way, element) +
         received_in_all_gather(partition, rank, way, element);
}

inline Received received_in_broadcast(std::int64_t size, int rank, int root, ExchangeWay const& way,
                                      ElementBytes const& element) {
  if (rank == root) return {};
  std::int64_t const bytes = size * element.moved;
  bool const far = !way.hosts.together(rank, root);
  return {size, bytes, far ? bytes / way.ranks_of_host.value_or(1) : 0};
}

} // namespace kozero
