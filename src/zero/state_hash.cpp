#include "zero/state_hash.hpp"

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/views.hpp"

#include <algorithm>
#include <functional>

namespace kozero {

namespace {

constexpr std::int64_t chunk_elements = state_hash_chunk;

/// Hands the pieces of a state to one hash in a fixed order. Where it is sharded the owner of a piece broadcasts it and
/// rank 0 hashes; where every rank has all of it each hashes its own.
class StateHasher {
public:
  StateHasher(Lane const& lane, Plan const& plan, Communicator& comm, Ledger& ledger)
      : lane_(lane), comm_(comm), sharded_(plan.optimizer() == Plan::Keep::shard),
        chunk_(ledger, Category::staging, "state hash", chunk_elements) {}

  /// Elements `wanted` of a block, of which this rank has `held` at `data`.
  void add(Partition const& partition, Interval wanted, Interval held, float const* data) {
    if (!sharded_) {
      add_owned(wanted, held, data, comm_.rank());
      return;
    }
    for (int owner = 0; owner < comm_.size(); ++owner) {
      add_owned(intersect(wanted, partition.shard(owner)), held, data, owner);
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
  void add_owned(Interval part, Interval held, float const* data, int owner) {
    for (std::int64_t at = part.begin; at < part.end; at += chunk_elements) {
      std::int64_t const count = std::min(chunk_elements, part.end - at);
      if (owner == comm_.rank()) {
        Kokkos::View<float*, HostMemory, Unmanaged> const chunk(chunk_.data(), static_cast<std::size_t>(count));
        Kokkos::deep_copy(lane_.exec(), chunk, make_vec<float const>(data + (at - held.begin), count));
        lane_.fence();
      }
      if (sharded_) {
        comm_.broadcast(lane_, {chunk_.data(), count, DType::f32, Space::host}, owner, Traffic::control).wait(lane_);
      }
      if (comm_.rank() == 0 || !sharded_) hash_.update(chunk_.data(), static_cast<std::size_t>(count) * sizeof(float));
    }
  }

  Lane const& lane_;
  Communicator& comm_;
  bool sharded_;
  HostBuffer<float> chunk_;
  Hash128 hash_;
};

} // namespace

std::string hash_state(Lane const& lane, Plan const& plan, ModelLayout const& layout, OptimizerState const& state,
                       Communicator& comm, Ledger& ledger) {
  StateHasher hasher(lane, plan, comm, ledger);
  for (std::size_t b = 0; b < layout.size(); ++b) {
    auto const& block = state.block(static_cast<int>(b));
    Partition const partition = plan.partition(layout[b].size());
    for (auto const& tensor : layout[b].tensors()) {
      for (auto const* kind : {&block.master, &block.m, &block.v}) {
        hasher.add(partition, tensor.interval(), block.interval, kind->data());
      }
    }
  }
  return hasher.result();
}

} // namespace kozero
