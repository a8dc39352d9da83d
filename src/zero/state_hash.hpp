#pragma once
#include "comm/ranks.hpp"
#include "core/lane.hpp"
#include "core/ledger.hpp"
#include "layout/block_layout.hpp"
#include "zero/held_state.hpp"
#include "zero/plan.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kozero {

/// The state hash: XXH3-128 over the digests of fixed chunks of all tensors (doc/numerics.md), the same for every way
/// to shard and place the state. Each rank hashes the chunks that begin in its shards; of those that end in the shards
/// of others it gets the rest from them, and nothing else moves but digests.
///
///     StateHash const hash(plan, layout, engine.state(), ranks, ledger);   // refers to all of these
///     hash.hex(lane);
///
/// Where another thread is to do most of the work, on state that the host reaches and nobody changes:
///
///     auto const digests = hash.prepare([] {});   // there
///     hash.hex(lane, digests);                    // here
class StateHash {
public:
  /// Elements of a chunk; the last one of a tensor may be shorter.
  static constexpr std::int64_t chunk_elements = 1 << 16;
  /// How the host gets at Space::device: by its address, or through memory for a few chunks at a time.
  enum class DeviceAccess { reached, staged };

  /// `state` has master, m and v of what this rank updates, piece after piece in block order; other kinds are left out.
  StateHash(Plan const& plan, ModelLayout const& layout, std::vector<HeldState> const& state, Ranks& ranks,
            Ledger& ledger, DeviceAccess device = host_reaches_device ? DeviceAccess::reached : DeviceAccess::staged);

  /// Of the chunks that a rank owns, block by block.
  using Digests = std::vector<std::string>;
  /// Of those that end in its own shards; the rest is left open. By one thread, alone, which calls `gets_on` before
  /// each chunk; throws what that throws.
  Digests prepare(std::function<void()> const& gets_on) const;
  /// 32 hexadecimal digits, on every rank. Collective. SharedError where ranks hold copies and these differ.
  std::string hex(Lane const& lane, Digests const& prepared = {}) const;

private:
  /// What this rank has of a block in one memory.
  struct Piece {
    int block = 0;
    Interval interval;
    Space space = Space::device;
    std::array<float*, 3> data = {}; // by StateKind: of the first element
  };
  struct Chunk;
  struct Runs;
  using Chunks = std::vector<Chunk>;
  static Chunks chunks_of(BlockLayout const& block, Partition const& partition);
  void exchange_edges(Lane const& lane, int block, Partition const& partition, Chunks const& chunks) const;
  Chunks owned(Chunks const& chunks) const;
  std::string own_digests(Lane const& lane, int block, Interval own, Chunks const& chunks,
                          std::string const* prepared) const;
  Runs runs_of(Lane const& lane, int block, Interval own, Chunk const& chunk, std::int64_t place) const;
  Runs reached_runs(int block, Chunk const& chunk) const;
  std::span<Piece const> pieces_of(int block) const;
  void copy_to_host(Lane const& lane, int block, StateKind kind, Interval interval, float* to) const;
  void require_equal_copies(std::string const& hash) const;

  ModelLayout const& layout_;
  std::vector<Piece> pieces_; // in block order
  Ranks& ranks_;
  int owners_; // ranks that the state is cut over: 1 where each holds all of it
  int self_;   // among them
  DeviceAccess device_;
  PinnedBuffer<float> edges_in_, edges_out_; // messages: a chunk of each kind
  HostBuffer<float> staging_;
};

} // namespace kozero
