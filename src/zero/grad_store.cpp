#include "zero/grad_store.hpp"

#include "kernels/elementwise.hpp"

#include <algorithm>

namespace kozero {

namespace {

Vec<float> whole_of(DeviceBuffer<float> const& buffer, Partition const& partition) {
  return make_vec(buffer.data(), partition.size());
}

Span span_of(DeviceBuffer<float> const& buffer, Partition const& partition) {
  return {buffer.data(), partition.size(), DType::f32, Space::device};
}

void set_zero(Lane const& lane, Vec<float> const& values) { Kokkos::deep_copy(lane.exec(), values, 0.0f); }

/// Stages 0 and 1: whole blocks, micro-batches first, ranks at the end.
class FullGrads final : public GradStore {
public:
  FullGrads(Plan const& plan, ModelLayout const& layout, Communicator& comm, Ledger& ledger)
      : plan_(plan), comm_(comm) {
    for (auto const& block : layout) {
      partitions_.push_back(plan.partition(block.size()));
      blocks_.emplace_back(ledger, Category::gradients, block.name(), partitions_.back().capacity(),
                           DeviceBuffer<float>::Init::none);
    }
  }

  void begin(Lane const& lane, MicroBatchPlace place) override {
    place_ = place;
    if (!place.first) return;
    for (std::size_t b = 0; b < blocks_.size(); ++b) set_zero(lane, whole_of(blocks_[b], partitions_[b]));
  }
  Vec<float> block(Lane const&, int number) override { return whole_of(blocks_[number], partitions_[number]); }

  void reduce(Lane const& lane, int number) override {
    if (!place_.last) return;
    Partition const& partition = partitions_[number];
    Span const whole = span_of(blocks_[number], partition);
    Pending pending = plan_.optimizer() == Plan::Keep::whole
                          ? comm_.all_reduce(lane, whole, partition, Traffic::gradients)
                          : comm_.reduce_scatter(lane, whole, partition, Traffic::gradients);
    pending.wait(lane);
  }
  float* reduced(int number, Interval part) override { return blocks_[number].data() + part.begin; }

private:
  Plan plan_;
  Communicator& comm_;
  MicroBatchPlace place_;
  std::vector<Partition> partitions_;
  std::vector<DeviceBuffer<float>> blocks_;
};

/// Stages 2 and 3: a slot for the block under way, ranks first, micro-batches into the shard. The blocks of units that
/// only ever have their own gradient under way share one slot; a block that a second unit adds to (a tied embedding)
/// has one of its own, since it stays under way across units.
class ShardedGrads final : public GradStore {
public:
  ShardedGrads(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses, Communicator& comm,
               Ledger& ledger)
      : plan_(plan), comm_(comm), slot_of_block_(layout.size(), 0), under_way_(layout.size(), false) {
    std::vector<std::int64_t> slot_capacity(1, 0);
    for (std::size_t b = 0; b < layout.size(); ++b) {
      partitions_.push_back(plan.partition(layout[b].size()));
      shards_.emplace_back(ledger, Category::gradients, layout[b].name(), partitions_[b].shard_capacity(),
                           DeviceBuffer<float>::Init::none);
      if (is_shared(uses, static_cast<int>(b))) {
        slot_of_block_[b] = static_cast<int>(slot_capacity.size());
        slot_capacity.push_back(0);
      }
      auto& capacity = slot_capacity[slot_of_block_[b]];
      capacity = std::max(capacity, partitions_[b].capacity());
    }
    for (std::int64_t const capacity : slot_capacity) {
      slots_.emplace_back(ledger, Category::gradients, "gradient slot", capacity, DeviceBuffer<float>::Init::none);
    }
  }

  void begin(Lane const&, MicroBatchPlace place) override { place_ = place; }

  Vec<float> block(Lane const& lane, int number) override {
    Vec<float> const gradients = whole_of(slots_[slot_of_block_[number]], partitions_[number]);
    if (!under_way_[number]) {
      under_way_[number] = true;
      set_zero(lane, gradients);
    }
    return gradients;
  }

  void reduce(Lane const& lane, int number) override {
    Partition const& partition = partitions_[number];
    DeviceBuffer<float> const& slot = slots_[slot_of_block_[number]];
    comm_.reduce_scatter(lane, span_of(slot, partition), partition, Traffic::gradients).wait(lane);
    Interval const own = partition.shard(plan_.rank());
    Vec<float> const sum = make_vec(shards_[number].data(), own.size());
    Vec<float const> const addend = make_vec<float const>(slot.data() + own.begin, own.size());
    if (place_.first) {
      Kokkos::deep_copy(lane.exec(), sum, addend);
    } else {
      add<float>(lane, sum, sum, addend);
    }
    under_way_[number] = false;
  }

  float* reduced(int number, Interval part) override {
    Interval const own = partitions_[number].shard(plan_.rank());
    KOZERO_ASSERT(part.empty() || (own.begin <= part.begin && part.end <= own.end));
    return shards_[number].data() + (part.begin - own.begin);
  }

private:
  Plan plan_;
  Communicator& comm_;
  MicroBatchPlace place_;
  std::vector<Partition> partitions_;
  std::vector<DeviceBuffer<float>> shards_;
  std::vector<int> slot_of_block_;
  std::vector<bool> under_way_;
  std::vector<DeviceBuffer<float>> slots_;
};

} // namespace

std::unique_ptr<GradStore> make_grad_store(Plan const& plan, ModelLayout const& layout,
                                           std::vector<UnitUses> const& uses, Communicator& comm, Ledger& ledger) {
  if (plan.gradients() == Plan::Keep::whole) return std::make_unique<FullGrads>(plan, layout, comm, ledger);
  return std::make_unique<ShardedGrads>(plan, layout, uses, comm, ledger);
}

} // namespace kozero
