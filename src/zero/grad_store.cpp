#include "zero/grad_store.hpp"

#include "kernels/flat.hpp"
#include "zero/grad_shards.hpp"
#include "zero/grad_slots.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace kozero {

namespace {

template <class G>
Span span_of(G* data, Partition const& partition) {
  return {data, partition.size(), dtype_of<G>, Space::device};
}

/// Stages 0 and 1: whole blocks, micro-batches first, ranks at the end. fp32 blocks are added to in place, 16-bit ones
/// through a slot. Pieces on the host get what was reduced of them; with delayed updates all pieces have copies.
template <class G>
class FullGrads final : public GradStore {
public:
  FullGrads(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses, Communicator& comm,
            Ledger& ledger, LinkTraffic& link)
      : plan_(plan), comm_(comm), pieces_(plan.pieces(layout)),
        shards_(plan, pieces_, GradShards<G>::Deliveries::once, ledger, link) {
    for (auto const& block : layout) {
      partitions_.push_back(plan.partition(block.size()));
      blocks_.emplace_back(ledger, Category::gradients, block.name(), partitions_.back().capacity(),
                           DeviceBuffer<G>::Init::none);
    }
    if constexpr (!in_place) slots_.emplace(plan, layout, uses, ledger);
  }

  void begin(Lane const& lane, MicroBatchPlace place) override {
    place_ = place;
    shards_.release(lane); // copies out of the blocks
    if (!in_place || !place.first()) return;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      fill(lane, blocks_[b].pointer(), G(0.0f), partitions_[b].size());
    }
  }

  Vec<float> block(Lane const& lane, int number) override {
    std::int64_t const size = partitions_[number].size();
    if constexpr (in_place) {
      return make_vec(blocks_[number].data(), size);
    } else {
      return make_vec(slots_->begin(lane, number), size);
    }
  }

  void reduce(Lane const& lane, int number) override {
    Partition const& partition = partitions_[number];
    G* const block = blocks_[number].data();
    if constexpr (!in_place) {
      if (place_.first()) {
        convert(lane, block, slots_->data(number), partition.size());
      } else {
        accumulate(lane, block, slots_->data(number), partition.size());
      }
      slots_->end(number);
    }
    if (!place_.last()) return;
    Span const whole = span_of(block, partition);
    Pending pending = plan_.optimizer() == Plan::Keep::whole
                          ? comm_.all_reduce(lane, whole, partition, Traffic::gradients)
                          : comm_.reduce_scatter(lane, whole, partition, Traffic::gradients);
    pending.wait(lane);
    shards_.deliver(lane, number, block, true);
  }

  void wait(Lane const& lane) const override { shards_.wait(lane); }
  DType type() const override { return dtype_of<G>; }
  void* reduced(int piece) const override {
    return shards_.has_array(piece) ? shards_.present(piece) : in_block(pieces_[piece]);
  }
  void turn() override { shards_.turn(); }
  void* former(int piece) const override {
    return shards_.has_array(piece) ? shards_.former(piece) : in_block(pieces_[piece]);
  }

private:
  static constexpr bool in_place = std::is_same_v<G, float>;

  G* in_block(Piece const& piece) const { return blocks_[piece.block].data() + piece.interval.begin; }

  Plan plan_;
  Communicator& comm_;
  std::vector<Piece> pieces_;
  GradShards<G> shards_;
  MicroBatchPlace place_;
  std::vector<Partition> partitions_;
  std::vector<DeviceBuffer<G>> blocks_;
  std::optional<GradSlots> slots_;
};

/// Stages 2 and 3: a slot for the block under way, ranks first, micro-batches into the shards. 16-bit gradients are
/// rounded into a wire of their own, which is what ranks exchange.
template <class G>
class ShardedGrads final : public GradStore {
public:
  ShardedGrads(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses, Communicator& comm,
               Ledger& ledger, LinkTraffic& link)
      : comm_(comm), shards_(plan, plan.pieces(layout), GradShards<G>::Deliveries::each_micro_batch, ledger, link),
        slots_(plan, layout, uses, ledger) {
    std::int64_t largest = 0;
    for (auto const& block : layout) {
      partitions_.push_back(plan.partition(block.size()));
      largest = std::max(largest, partitions_.back().capacity());
    }
    if constexpr (rounds) {
      wire_ = {ledger, Category::gradients, "gradient wire", largest, DeviceBuffer<G>::Init::none};
    }
  }

  void begin(Lane const&, MicroBatchPlace place) override { place_ = place; }

  Vec<float> block(Lane const& lane, int number) override {
    if constexpr (!rounds) shards_.release(lane); // copies out of the slot
    return make_vec(slots_.begin(lane, number), partitions_[number].size());
  }

  void reduce(Lane const& lane, int number) override {
    Partition const& partition = partitions_[number];
    G* const wire = to_wire(lane, number);
    comm_.reduce_scatter(lane, span_of(wire, partition), partition, Traffic::gradients).wait(lane);
    shards_.deliver(lane, number, wire, place_.first());
    slots_.end(number);
  }

  void wait(Lane const& lane) const override { shards_.wait(lane); }
  DType type() const override { return dtype_of<G>; }
  void* reduced(int piece) const override { return shards_.present(piece); }
  void turn() override { shards_.turn(); }
  void* former(int piece) const override { return shards_.former(piece); }

private:
  static constexpr bool rounds = !std::is_same_v<G, float>;

  G* to_wire(Lane const& lane, int number) {
    if constexpr (rounds) {
      shards_.release(lane); // copies out of the wire
      convert(lane, wire_.data(), slots_.data(number), partitions_[number].size());
      return wire_.data();
    } else {
      return slots_.data(number);
    }
  }

  Communicator& comm_;
  GradShards<G> shards_;
  GradSlots slots_;
  MicroBatchPlace place_;
  std::vector<Partition> partitions_;
  DeviceBuffer<G> wire_;
};

} // namespace

std::unique_ptr<GradStore> make_grad_store(Plan const& plan, DType compute, ModelLayout const& layout,
                                           std::vector<UnitUses> const& uses, Communicator& comm, Ledger& ledger,
                                           LinkTraffic& link) {
  auto const make = [&]<class G>(G) -> std::unique_ptr<GradStore> {
    if (plan.gradients() == Plan::Keep::whole) {
      return std::make_unique<FullGrads<G>>(plan, layout, uses, comm, ledger, link);
    }
    return std::make_unique<ShardedGrads<G>>(plan, layout, uses, comm, ledger, link);
  };
  return with_float_type(plan.gradients_as_computed() ? compute : DType::f32, make);
}

} // namespace kozero
