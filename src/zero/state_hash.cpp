#include "zero/state_hash.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/launch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>

namespace kozero {

static_assert(std::endian::native == std::endian::little, "the hash is of memory as it is");

namespace {

constexpr std::array kinds = {StateKind::master, StateKind::m, StateKind::v};

// Chunks that are staged at a time: work for the host's threads, 4 MiB.
constexpr std::int64_t staged_chunks = 16;

using Digest = std::array<unsigned char, 16>;

// Where a chunk of a kind lies in memory for one of each.
float* place_of(StateKind kind, PinnedBuffer<float> const& memory) {
  return memory.data() + static_cast<std::int64_t>(kind) * StateHash::chunk_elements;
}

std::span<float> run(float* data, std::int64_t count) { return {data, static_cast<std::size_t>(count)}; }

} // namespace

/// Elements of one kind of a tensor, where they lie in the block, and the rank of the first.
struct StateHash::Chunk {
  StateKind kind = StateKind::master;
  Interval interval;
  int owner = 0;
};

/// The elements of a chunk, in order: at most in the device's piece, in the host's piece and in other ranks' shards.
struct StateHash::Runs {
  std::array<std::span<float const>, 3> runs;

  Digest digest() const {
    if (runs[1].empty() && runs[2].empty()) return Hash128::of(runs[0].data(), runs[0].size_bytes()).bytes();
    Hash128 hash;
    for (auto const& run : runs) hash.update(run.data(), run.size_bytes());
    return hash.digest().bytes();
  }
};

StateHash::StateHash(Plan const& plan, ModelLayout const& layout, std::vector<HeldState> const& state, Ranks& ranks,
                     Ledger& ledger, DeviceAccess device)
    : layout_(layout), ranks_(ranks), owners_(plan.optimizer() == Plan::Keep::shard ? plan.ranks() : 1),
      self_(owners_ > 1 ? plan.rank() : 0), device_(device) {
  auto const give_memory = [&]<class Memory>(Buffer<float, Memory>& buffer, std::int64_t chunks) {
    buffer = {ledger, Category::staging, "state hash", chunks * chunk_elements, Buffer<float, Memory>::Init::none};
  };
  if (owners_ > 1) {
    give_memory(edges_in_, std::ssize(kinds));
    give_memory(edges_out_, std::ssize(kinds));
  }
  if (device_ == DeviceAccess::staged) give_memory(staging_, staged_chunks);
  for (auto const& held : state) {
    if (held.kind == StateKind::gradient) continue;
    if (held.kind == StateKind::master) pieces_.push_back({held.block, held.interval, held.space});
    pieces_.back().data.at(static_cast<std::size_t>(held.kind)) = static_cast<float*>(held.data);
  }
}

StateHash::Digests StateHash::prepare(std::function<void()> const& gets_on) const {
  KOZERO_ASSERT(device_ == DeviceAccess::reached);
  Digests all;
  for (std::size_t b = 0; b < layout_.size(); ++b) {
    Partition const partition(layout_[b].size(), owners_);
    Interval const own = partition.shard(self_);
    std::string digests;
    for (Chunk const& chunk : owned(chunks_of(layout_[b], partition))) {
      gets_on();
      bool const is_whole = chunk.interval.end <= own.end;
      Digest const digest = is_whole ? reached_runs(static_cast<int>(b), chunk).digest() : Digest();
      digests.append(digest.begin(), digest.end());
    }
    all.push_back(std::move(digests));
  }
  return all;
}

std::string StateHash::hex(Lane const& lane, Digests const& prepared) const {
  lane.fence("state hash"); // what it is given to do to the state
  Hash128 hash;
  for (std::size_t b = 0; b < layout_.size(); ++b) {
    int const block = static_cast<int>(b);
    Partition const partition(layout_[b].size(), owners_);
    Chunks const chunks = chunks_of(layout_[b], partition);
    exchange_edges(lane, block, partition, chunks);
    std::string const own =
        own_digests(lane, block, partition.shard(self_), chunks, prepared.empty() ? nullptr : &prepared[b]);
    auto const digests = owners_ > 1 ? ranks_.gather(own) : std::vector{own};
    std::vector<std::size_t> next(digests.size());
    for (Chunk const& chunk : chunks) { // each owner has made its digests in this order
      hash.update(digests[chunk.owner].data() + next[chunk.owner], sizeof(Digest));
      next[chunk.owner] += sizeof(Digest);
    }
  }
  std::string const result = hash.hex();
  if (owners_ == 1) require_equal_copies(result);
  return result;
}

/// All chunks of a block, in the order of the hash.
StateHash::Chunks StateHash::chunks_of(BlockLayout const& block, Partition const& partition) {
  Chunks chunks;
  for (auto const& tensor : block.tensors()) {
    Interval const whole = tensor.interval();
    for (StateKind const kind : kinds) {
      for (std::int64_t at = whole.begin; at < whole.end; at += chunk_elements) {
        chunks.push_back({kind, {at, std::min(at + chunk_elements, whole.end)}, partition.owner(at)});
      }
    }
  }
  return chunks;
}

/// Brings what other ranks hold of chunks to their owners. Of each kind one chunk at the most begins in a shard and
/// goes on past its end, and one begins before it and goes on into it: so there is room for one each.
///
/// No rank waits for ever: all come to the blocks in one order, each starts all its messages of a block before it waits
/// for any, and owners are below those that send to them, so that no ring of ranks waits in itself.
void StateHash::exchange_edges(Lane const& lane, int block, Partition const& partition, Chunks const& chunks) const {
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (Chunk const& chunk : chunks) {
    int const last = partition.owner(chunk.interval.end - 1);
    if (chunk.owner == self_) {
      float* place = last > self_ ? place_of(chunk.kind, edges_in_) : nullptr;
      for (int rank = self_ + 1; rank <= last; ++rank) {
        std::int64_t const count = intersect(chunk.interval, partition.shard(rank)).size();
        receives.push_back({rank, std::as_writable_bytes(run(place, count))});
        place += count;
      }
    } else if (chunk.owner < self_ && self_ <= last) {
      Interval const part = intersect(chunk.interval, partition.shard(self_));
      float* const place = place_of(chunk.kind, edges_out_);
      copy_to_host(lane, block, chunk.kind, part, place);
      sends.push_back({chunk.owner, std::as_bytes(run(place, part.size()))});
    }
  }
  ranks_.exchange(sends, receives);
}

/// Those that this rank owns.
StateHash::Chunks StateHash::owned(Chunks const& chunks) const {
  Chunks own;
  std::ranges::copy_if(chunks, std::back_inserter(own), [&](Chunk const& c) { return c.owner == self_; });
  return own;
}

/// The digests of the chunks that this rank owns, one after another, made by the host's threads; of those that are
/// prepared, only what is open.
std::string StateHash::own_digests(Lane const& lane, int block, Interval own, Chunks const& chunks,
                                   std::string const* prepared) const {
  Chunks const mine = owned(chunks);
  std::string digests = prepared ? *prepared : std::string(mine.size() * sizeof(Digest), '\0');
  std::vector<std::int64_t> open;
  for (std::int64_t c = 0; c < std::ssize(mine); ++c) {
    if (!prepared || mine[c].interval.end > own.end) open.push_back(c);
  }
  std::int64_t const at_once = device_ == DeviceAccess::staged ? staged_chunks : std::ssize(open);
  for (std::int64_t begin = 0; begin < std::ssize(open); begin += at_once) {
    std::vector<Runs> runs;
    for (std::int64_t n = begin; n < std::min(begin + at_once, std::ssize(open)); ++n) {
      runs.push_back(runs_of(lane, block, own, mine[open[n]], n - begin));
    }
    launch(HostLane(), "kozero::state_hash", Range{std::ssize(runs)}, [&](std::int64_t r) {
      Digest const digest = runs[r].digest();
      std::ranges::copy(digest, digests.begin() + open[begin + r] * std::ssize(digest));
    });
  }
  return digests;
}

/// Where a chunk is, or will be in the given place of the staging memory.
StateHash::Runs StateHash::runs_of(Lane const& lane, int block, Interval own, Chunk const& chunk,
                                   std::int64_t place) const {
  Runs result;
  if (device_ == DeviceAccess::staged) {
    Interval const part = intersect(chunk.interval, own);
    float* const staging = staging_.data() + place * chunk_elements;
    copy_to_host(lane, block, chunk.kind, part, staging);
    result.runs[0] = run(staging, part.size());
  } else {
    result = reached_runs(block, chunk);
  }
  std::int64_t const rest = chunk.interval.end - own.end;
  auto const free = std::ranges::find_if(result.runs, [](auto const& taken) { return taken.empty(); });
  if (rest > 0) *free = run(place_of(chunk.kind, edges_in_), rest);
  return result;
}

/// What this rank has of a chunk, where it is.
StateHash::Runs StateHash::reached_runs(int block, Chunk const& chunk) const {
  Runs result;
  std::size_t n = 0;
  for (Piece const& piece : pieces_of(block)) { // in their order
    Interval const common = intersect(chunk.interval, piece.interval);
    if (common.empty()) continue;
    float* const data = piece.data.at(static_cast<std::size_t>(chunk.kind));
    result.runs[n++] = run(data + (common.begin - piece.interval.begin), common.size());
  }
  return result;
}

std::span<StateHash::Piece const> StateHash::pieces_of(int block) const {
  return of_block(pieces_, block, [](Piece const& piece) { return piece.block; });
}

/// Elements `interval` of a block, which this rank updates all. Waits for the lane.
void StateHash::copy_to_host(Lane const& lane, int block, StateKind kind, Interval interval, float* to) const {
  for (Piece const& piece : pieces_of(block)) {
    Interval const common = intersect(interval, piece.interval);
    if (common.empty()) continue;
    float* const data = piece.data.at(static_cast<std::size_t>(kind));
    float* const from = data + (common.begin - piece.interval.begin);
    float* const target = to + (common.begin - interval.begin);
    if (piece.space != Space::device) {
      std::copy_n(from, common.size(), target);
    } else {
      copy(lane, on_host(target), on_device(from), common.size());
    }
  }
}

void StateHash::require_equal_copies(std::string const& hash) const {
  auto const hashes = ranks_.gather(hash);
  if (std::ranges::adjacent_find(hashes, std::not_equal_to<>()) == hashes.end()) return;
  throw SharedError("the ranks' copies of the model differ (memory or the network has changed bits, or kozero is "
                    "at fault); resume from the last checkpoint, if there is one");
}

} // namespace kozero
