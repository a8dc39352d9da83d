#pragma once
#include "comm/pending.hpp"
#include "comm/traffic.hpp"
#include "core/dtype.hpp"
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "layout/partition.hpp"

#include <cstdint>

namespace kozero {

/// Untyped memory that takes part in a collective.
struct Span {
  void* data = nullptr;
  std::int64_t count = 0; // elements
  DType type = DType::u8;
  Space space = Space::device;
  char const* name = ""; // of the block, for people; read by the call alone
};

/// Data in device or pinned memory, moved among the ranks of one group. Every call but progress is collective: all
/// ranks, same order, same sizes. It starts something, which gets on beside the ranks' other work and beside other
/// collectives, and need not end in the order of the calls.
///
/// Sums have one order: for each element a binary tree over the ranks, ((0+1)+(2+3))+…, in the type of the data for
/// f32, f64, i64, i32 and in fp32 for bf16 and f16. So a sum has the same bits on all ranks, in each call, and whatever
/// the collective is called: all_reduce ≡ reduce_scatter + all_gather.
///
/// Arrays are partitioned in place: `whole` has partition.size() logical elements, and rank r's part of it is
/// partition.shard(r). Work given to the lane before the call is done before the collective reads the array.
class Collectives {
public:
  virtual ~Collectives() = default;
  Collectives() = default;
  Collectives(Collectives const&) = delete;
  Collectives& operator=(Collectives const&) = delete;

  /// In: own shard of `whole` holds this rank's part. Out: all shards.
  virtual Pending all_gather(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) = 0;
  /// In: `whole` holds this rank's addends. Out: own shard holds the sum over ranks, the rest is unspecified.
  virtual Pending reduce_scatter(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) = 0;
  /// In: `whole` holds this rank's addends. Out: the sums.
  virtual Pending all_reduce(Lane const& lane, Span whole, Partition const& partition, Traffic purpose) = 0;
  /// Out: what `root` has in `data`.
  virtual Pending broadcast(Lane const& lane, Span data, int root, Traffic purpose) = 0;

  /// Gets on with what is under way, without waiting for anything. Also done between launches, and by every wait.
  virtual void progress() = 0;
  /// This rank comes to no other collective, for an error: whatever it has under way must keep neither its device nor
  /// its memory. Waits for no rank.
  virtual void abandon() noexcept {}
};

} // namespace kozero
