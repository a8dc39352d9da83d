#pragma once
#include "comm/ranks.hpp"
#include "zero/optimizer_state.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kozero {

/// The state hash: XXH3-128 over the digests of fixed chunks of all tensors (doc/numerics.md), the same for every way
/// to shard and place the state. Each rank hashes the chunks that begin in its shards; of those that end in the shards
/// of others it gets the rest from them, and nothing else moves but digests.
///
///     StateHash const hash(plan, layout, state, ranks, ledger);   // refers to all of these
///     hash.hex(lane);
class StateHash {
public:
  /// Elements of a chunk; the last one of a tensor may be shorter.
  static constexpr std::int64_t chunk_elements = 1 << 16;
  /// How the host gets at Space::device: by its address, or through memory for a few chunks at a time.
  enum class DeviceAccess { reached, staged };

  StateHash(Plan const& plan, ModelLayout const& layout, OptimizerState const& state, Ranks& ranks, Ledger& ledger,
            DeviceAccess device = host_reaches_device ? DeviceAccess::reached : DeviceAccess::staged);

  /// 32 hexadecimal digits, on every rank. Collective. SharedError where ranks hold copies and these differ.
  std::string hex(Lane const& lane) const;

private:
  struct Chunk;
  struct Runs;
  using Chunks = std::vector<Chunk>;
  static Chunks chunks_of(BlockLayout const& block, Partition const& partition);
  void exchange_edges(Lane const& lane, int block, Partition const& partition, Chunks const& chunks) const;
  std::string own_digests(Lane const& lane, int block, Interval own, Chunks const& chunks) const;
  Runs runs_of(Lane const& lane, int block, Interval own, Chunk const& chunk, std::int64_t place) const;
  void require_equal_copies(std::string const& hash) const;

  ModelLayout const& layout_;
  OptimizerState const& state_;
  Ranks& ranks_;
  int owners_; // ranks that the state is cut over: 1 where each holds all of it
  int self_;   // among them
  DeviceAccess device_;
  PinnedBuffer<float> edges_in_, edges_out_; // messages: a chunk of each kind
  HostBuffer<float> staging_;
};

} // namespace kozero
