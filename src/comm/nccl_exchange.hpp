#pragma once
#include "comm/collectives.hpp"
#include "comm/nccl_connection.hpp"
#include "layout/partition.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kozero {

/// The ranks that a rank exchanges with in such rounds, and itself first: in one level all, in two those of its host
/// and those of its place on the others.
std::vector<int> exchange_peers(int rank, int ranks, std::optional<int> ranks_of_host);

/// One round of a sum over ranks: the same run of elements of each rank's part of an array. Plain numbers, so that what
/// a lane is given may hold them.
///
/// In one level each rank gets its own run from every other one and adds N addends. In two, ranks 0…L-1 on the first
/// host, L…2L-1 on the second and so on, M hosts in all:
///
///     1. within a host, rank l gets from each other one the runs of all ranks l, L+l, 2L+l, …, and adds L addends
///        of each: M sums over this host
///     2. between hosts, it gets from each rank L+l, 2L+l, … the sum of its own run over that host, and adds M of them
///
/// L is a power of two, so the sums over hosts are subtrees of the tree over all ranks, and the sum of the sums is the
/// rest of it: the same bits. Sums over a host are fp32 where the addends have 16 bits.
class NcclRound {
public:
  NcclRound(Span const& whole, Partition const& partition, int rank, std::optional<int> ranks_of_host);

  /// Elements of each part that a round takes where sums pass through so many bytes; 0 where these are too few for any.
  std::int64_t elements_in(std::int64_t bytes) const;
  /// Elements begin … begin + elements of each part, elements_in(its size) or fewer, a multiple of 8. They pass through
  /// the memory.
  void take(std::int64_t begin, std::int64_t elements, unsigned char* memory);

  bool in_two_levels() const { return hosts_ > 1; }
  void exchange_within_hosts(NcclGroup const& group) const;
  /// In one level that is the whole sum.
  void sum_within_hosts(Lane const& lane) const;
  // In two levels alone.
  void exchange_between_hosts(NcclGroup const& group) const;
  void sum_between_hosts(Lane const& lane) const;

private:
  Interval run(int rank) const;
  std::int64_t run_size(int rank) const { return run(rank).size(); }
  unsigned char* in_array(int rank) const;
  unsigned char* incoming(int near, int host) const;
  unsigned char* sum_of_host(int host) const { return sums_ + host * length_ * sum_size(); }
  unsigned char* sum_from(int host) const { return sums_ + (hosts_ + host) * length_ * sum_size(); }
  std::int64_t size() const { return size_of(whole_.type); }
  std::int64_t sum_size() const { return size_of(sum_type()); }
  DType sum_type() const { return is_half_type(whole_.type) ? DType::f32 : whole_.type; }
  static bool is_half_type(DType type) { return type == DType::bf16 || type == DType::f16; }
  int rank_at(int host, int near) const { return host * near_ + near; }

  Span whole_;
  Partition partition_;
  int near_;  // ranks of a host: all, in one level
  int hosts_; // 1, in one level
  int own_near_;
  int own_host_;
  std::int64_t begin_ = 0;
  std::int64_t length_ = 0;
  unsigned char* incoming_ = nullptr; // [near][hosts] runs of addends
  unsigned char* sums_ = nullptr;     // [hosts] runs of sums over this host, [hosts] of those that come
};

} // namespace kozero
