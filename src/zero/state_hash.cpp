#include "zero/state_hash.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"

#include <algorithm>
#include <functional>

namespace kozero {

namespace {

/// Hands the pieces of a state to one hash in a fixed order. Where it is sharded the owner of a piece broadcasts it and
/// rank 0 hashes; where every rank has all of it each hashes its own.
class StateHasher {
public:
  StateHasher(Lane const& lane, Plan const& plan, OptimizerState const& state, Communicator& comm,
              HostBuffer<float> const& chunk)
      : lane_(lane), state_(state), comm_(comm), sharded_(plan.optimizer() == Plan::Keep::shard), chunk_(chunk) {}

  /// Elements `wanted` of a block.
  void add(int block, StateKind kind, Partition const& partition, Interval wanted) {
    if (!sharded_) {
      add_owned(block, kind, wanted, comm_.rank());
      return;
    }
    for (int owner = 0; owner < comm_.size(); ++owner) {
      add_owned(block, kind, intersect(wanted, partition.shard(owner)), owner);
    }
  }

  std::string result() {
    auto const digests = comm_.gather(hash_.hex());
    if (!sharded_ && std::adjacent_find(digests.begin(), digests.end(), std::not_equal_to<>()) != digests.end()) {
      throw SharedError("the ranks' copies of the model differ (memory or the network has changed bits, or kozero is "
                        "at fault); resume from the last checkpoint");
    }
    return digests[0];
  }

private:
  void add_owned(int block, StateKind kind, Interval part, int owner) {
    for (std::int64_t at = part.begin; at < part.end; at += state_hash_chunk) {
      std::int64_t const count = std::min(state_hash_chunk, part.end - at);
      if (owner == comm_.rank()) {
        state_.copy_to_host(lane_, block, kind, {at, at + count}, chunk_.data());
      }
      if (sharded_) {
        comm_.broadcast(lane_, {chunk_.data(), count, DType::f32, Space::host}, owner, Traffic::control).wait(lane_);
      }
      if (comm_.rank() == 0 || !sharded_) hash_.update(chunk_.data(), static_cast<std::size_t>(count) * sizeof(float));
    }
  }

  Lane const& lane_;
  OptimizerState const& state_;
  Communicator& comm_;
  bool sharded_;
  HostBuffer<float> const& chunk_;
  Hash128 hash_;
};

} // namespace

std::string hash_state(Lane const& lane, Plan const& plan, ModelLayout const& layout, OptimizerState const& state,
                       Communicator& comm, HostBuffer<float> const& chunk) {
  StateHasher hasher(lane, plan, state, comm, chunk);
  for (std::size_t b = 0; b < layout.size(); ++b) {
    Partition const partition = plan.partition(layout[b].size());
    for (auto const& tensor : layout[b].tensors()) {
      for (StateKind const kind : {StateKind::master, StateKind::m, StateKind::v}) {
        hasher.add(static_cast<int>(b), kind, partition, tensor.interval());
      }
    }
  }
  return hasher.result();
}

} // namespace kozero
