#include "zero/state_hash.hpp"

#include "core/hash.hpp"
#include "core/views.hpp"

#include <algorithm>

namespace kozero {

namespace {

constexpr std::int64_t chunk_elements = 1 << 20;

/// Hands the pieces of a sharded state to one hash in a fixed order: the owner of a piece broadcasts it, rank 0 hashes.
class StateHasher {
public:
  StateHasher(Lane const& lane, Plan const& plan, Communicator& comm, Ledger& ledger)
      : lane_(lane), plan_(plan), comm_(comm), chunk_(ledger, Category::staging, "state hash", chunk_elements) {}

  /// Elements `wanted` of a block, of which this rank has `held` at `data`.
  void add(Partition const& partition, Interval wanted, Interval held, float const* data) {
    if (plan_.optimizer() == Plan::Keep::whole) {
      add_owned(wanted, held, data, comm_.rank());
      return;
    }
    for (int owner = 0; owner < comm_.size(); ++owner) {
      add_owned(intersect(wanted, partition.shard(owner)), held, data, owner);
    }
  }

  std::string result() {
    std::string text = comm_.rank() == 0 ? hash_.hex() : std::string();
    comm_.broadcast(text, 0);
    return text;
  }

private:
  void add_owned(Interval part, Interval held, float const* data, int owner) {
    for (std::int64_t at = part.begin; at < part.end; at += chunk_elements) {
      auto const count = static_cast<std::size_t>(std::min(chunk_elements, part.end - at));
      Kokkos::View<float*, HostMemory, Unmanaged> const chunk(chunk_.data(), count);
      if (owner == comm_.rank()) {
        Kokkos::deep_copy(lane_.exec(), chunk, Vec<float const>(data + (at - held.begin), count));
        lane_.fence();
      }
      if (plan_.optimizer() == Plan::Keep::shard) {
        comm_.broadcast(lane_, {chunk_.data(), static_cast<std::int64_t>(count), DType::f32, Space::host}, owner,
                        Traffic::control)
            .wait(lane_);
      }
      if (comm_.rank() == 0) hash_.update(chunk_.data(), count * sizeof(float));
    }
  }

  Lane const& lane_;
  Plan const& plan_;
  Communicator& comm_;
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
