#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kozero {

/// Which ranks of a group are on one host: messages within a host go another way than those between hosts.
///
///     RankHosts(8)                          // all on one
///     RankHosts::runs_of(4, 16)             // ranks 0-3 on the first, 4-7 on the second, …
///     RankHosts({0, 0, 1, 1})               // by rank; the numbers are alike where the hosts are
class RankHosts {
public:
  explicit RankHosts(int ranks) : hosts_(static_cast<std::size_t>(ranks), 0) {}
  explicit RankHosts(std::vector<int> host_of_rank) : hosts_(std::move(host_of_rank)) {}
  static RankHosts runs_of(int ranks_per_host, int ranks) {
    RankHosts all(ranks);
    for (int rank = 0; rank < ranks; ++rank) all.hosts_[static_cast<std::size_t>(rank)] = rank / ranks_per_host;
    return all;
  }

  /// Of a group of these ranks.
  RankHosts among(std::vector<int> const& members) const {
    std::vector<int> hosts;
    for (int const rank : members) hosts.push_back(host_of(rank));
    return RankHosts(std::move(hosts));
  }

  int ranks() const { return static_cast<int>(hosts_.size()); }
  bool together(int a, int b) const { return host_of(a) == host_of(b); }

  /// Ranks of each host, where a sum over ranks may be made within hosts first and then between them, with the same
  /// tree: there are several hosts, and each has the same power of two, above 1, of neighbouring ranks.
  std::optional<int> ranks_of_each() const {
    auto const own = static_cast<int>(std::ranges::count(hosts_, hosts_.front()));
    if (own == 1 || own == ranks() || !std::has_single_bit(static_cast<unsigned>(own)) || ranks() % own != 0) {
      return std::nullopt;
    }
    std::vector<int> seen;
    for (int first = 0; first < ranks(); first += own) {
      for (int rank = first; rank < first + own; ++rank) {
        if (!together(first, rank)) return std::nullopt;
      }
      if (std::ranges::find(seen, host_of(first)) != seen.end()) return std::nullopt;
      seen.push_back(host_of(first));
    }
    return own;
  }

private:
  int host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  std::vector<int> hosts_; // by rank
};

} // namespace kozero
