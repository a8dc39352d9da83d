#include "zero/grad_store.hpp"

#include "core/launch.hpp"
#include "kernels/flat.hpp"
#include "zero/grad_shards.hpp"
#include "zero/grad_slots.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

namespace kozero {

namespace {

template <class G>
Span span_of(G* data, Partition const& partition, std::string const& block) {
  return {data, partition.capacity(), dtype_of<G>, Space::device, block.c_str()};
}

/// Stages 0 and 1: whole blocks, micro-batches first, then ranks. Backward passes add to fp32 blocks in place, as long
/// as that is the order of sums; else, and where blocks have 16 bits, to a slot. Pieces on the host get what was
/// reduced of them; with delayed updates, or where an update is reduced in parts, all pieces have copies.
template <class G>
class FullGrads final : public GradStore {
public:
  FullGrads(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses, Collectives& collectives,
            Ledger& ledger, LinkTraffic& link)
      : plan_(plan), run_(plan.micro_batches() / plan.reductions()), collectives_(collectives),
        pieces_(plan.pieces(layout)),
        shards_(plan, pieces_,
                plan.reductions() > 1 ? GradShards<G>::Deliveries::several : GradShards<G>::Deliveries::one, ledger,
                link) {
    sums_.resize(static_cast<std::size_t>(most_partial_sums(plan.sums(), run_)));
    for (auto const& block : layout) {
      partitions_.push_back(plan.partition(block.size()));
      names_.push_back(block.name());
      std::int64_t elements = partitions_.back().capacity();
      for (auto& blocks : sums_) {
        blocks.emplace_back(ledger, Category::gradients, block.name(), elements, DeviceBuffer<G>::Init::none);
        elements = block.size(); // ranks exchange the first alone
      }
    }
    if (!in_place || (plan.sums() == SumOrder::tree && run_ > 1)) {
      slots_.emplace(plan, layout, uses, GradSlots::Shared::one, ledger);
    }
  }

  void begin(Lane const& lane, MicroBatchPlace place) override {
    KOZERO_ASSERT(place.count == plan_.micro_batches());
    place_ = place;
    step_ = sum_step(plan_.sums(), place.number % run_, run_);
    if (begins_run()) finish_all(lane);
    shards_.release(lane); // copies out of the blocks
    if constexpr (in_place) {
      if (step_.joins > 0) return;
      for (std::size_t b = 0; b < partitions_.size(); ++b) {
        fill(lane, sums_[step_.held][b].pointer(), 0.0f, partitions_[b].size());
      }
    }
  }

  Vec<float> block(Lane const& lane, int number) override {
    std::int64_t const size = partitions_[number].size();
    if constexpr (in_place) {
      if (adds_to_sum()) return make_vec(sums_[step_.held - step_.joins][number].data(), size);
    }
    return make_vec(slots_->begin(lane, number), size);
  }

  void reduce(Lane const& lane, int number) override {
    if (!adds_to_sum()) add_slot(lane, number);
    if (!ends_run()) return;
    Partition const& partition = partitions_[number];
    turn_ = 1 - turn_;
    finish(lane, transits_[turn_]);
    Span const whole = span_of(sums_[0][number].data(), partition, names_[number]);
    transits_[turn_] = {number, sum_step(plan_.sums(), place_.number / run_, plan_.reductions()),
                        plan_.optimizer() == Plan::Keep::whole
                            ? collectives_.all_reduce(lane, whole, partition, Traffic::gradients)
                            : collectives_.reduce_scatter(lane, whole, partition, Traffic::gradients)};
    if (partition.ranks() == 1) finish(lane, transits_[turn_]);
  }

  void wait(Lane const& lane) override {
    finish_all(lane);
    shards_.wait();
  }
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
  struct Transit {
    int block = -1; // none
    SumStep step;   // of what is reduced
    Pending pending;
  };

  /// Of micro-batches between one reduction and the next.
  bool begins_run() const { return place_.number % run_ == 0; }
  bool ends_run() const { return (place_.number + 1) % run_ == 0; }
  /// Whether backward passes of the present micro-batch add to a partial sum itself, not to a slot.
  bool adds_to_sum() const { return in_place && (plan_.sums() == SumOrder::ascending || step_.joins == 0); }

  G* in_block(Piece const& piece) const { return sums_[0][piece.block].data() + piece.interval.begin; }

  /// The present micro-batch's gradient of a block becomes a partial sum, or joins those that are there.
  void add_slot(Lane const& lane, int number) {
    std::int64_t const size = partitions_[number].size();
    auto const sum = [&](int level) { return sums_[level][number].data(); };
    if (step_.joins == 0) {
      convert(lane, sum(step_.held), slots_->data(number), size);
    } else {
      accumulate(lane, sum(step_.held - 1), slots_->data(number), size);
    }
    slots_->end(number);
    for (int level = step_.held - 1; level > step_.held - step_.joins; --level) {
      accumulate(lane, sum(level - 1), sum(level), size);
    }
  }

  void finish_all(Lane const& lane) {
    finish(lane, transits_[1 - turn_]);
    finish(lane, transits_[turn_]);
  }

  void finish(Lane const& lane, Transit& transit) {
    if (transit.block < 0) return;
    transit.pending.wait(lane);
    shards_.deliver(lane, transit.block, sums_[0][transit.block].data(), transit.step);
    transit.block = -1;
  }

  Plan plan_;
  std::int64_t run_; // micro-batches from one reduction to the next
  Collectives& collectives_;
  std::vector<Piece> pieces_;
  GradShards<G> shards_;
  MicroBatchPlace place_;
  SumStep step_; // of the present micro-batch, on this rank
  std::vector<Partition> partitions_;
  std::vector<std::string> names_; // of blocks
  std::vector<std::vector<DeviceBuffer<G>>>
      sums_; // partial ones, by block; the first becomes that of all micro-batches
  std::optional<GradSlots> slots_;
  std::array<Transit, 2>
      transits_; // of blocks that ranks exchange while the next units are computed: the ones that began last, in turn
  int turn_ = 0;
};

/// Stages 2 and 3: a slot for the block under way, ranks first, micro-batches into the shards. 16-bit gradients are
/// rounded into a wire of their own, which is what ranks exchange. There are two of what is exchanged, where there are
/// ranks to exchange it with: the reduction of a unit ends where its memory is wanted again.
template <class G>
class ShardedGrads final : public GradStore {
public:
  ShardedGrads(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses, Collectives& collectives,
               Ledger& ledger, LinkTraffic& link)
      : order_(plan.sums()), micro_batches_(plan.micro_batches()), collectives_(collectives),
        shards_(plan, plan.pieces(layout), GradShards<G>::Deliveries::several, ledger, link),
        slots_(plan, layout, uses, plan.ranks() > 1 && !rounds ? GradSlots::Shared::two : GradSlots::Shared::one,
               ledger) {
    std::int64_t largest = 0;
    for (auto const& block : layout) {
      partitions_.push_back(plan.partition(block.size()));
      names_.push_back(block.name());
      largest = std::max(largest, partitions_.back().capacity());
    }
    if constexpr (rounds) {
      wires_.resize(plan.ranks() > 1 ? 2 : 1);
      for (auto& wire : wires_) {
        wire = {ledger, Category::gradients, "gradient wire", largest, DeviceBuffer<G>::Init::none};
      }
    }
    transits_.resize(rounds ? wires_.size() : static_cast<std::size_t>(slots_.count()));
  }

  void begin(Lane const&, MicroBatchPlace place) override {
    KOZERO_ASSERT(order_ == SumOrder::ascending || place.count == micro_batches_); // or partial sums would not suffice
    place_ = place;
  }

  Vec<float> block(Lane const& lane, int number) override {
    if constexpr (!rounds) {
      finish(lane, slots_.slot_of(number));
      shards_.release(lane); // copies out of the slot
    } else if (shards_.go_to_host()) {
      finish(lane, next_wire()); // so that the copy runs beside the backward pass that fills the slot
    }
    return make_vec(slots_.begin(lane, number), partitions_[number].size());
  }

  void reduce(Lane const& lane, int number) override {
    int const t = to_transit(lane, number);
    Partition const& partition = partitions_[number];
    Pending pending = collectives_.reduce_scatter(lane, span_of(memory(t, number), partition, names_[number]),
                                                  partition, Traffic::gradients);
    transits_[t] = {number, sum_step(order_, place_.number, place_.count), std::move(pending)};
    slots_.end(number);
    if (partition.ranks() == 1) finish(lane, t);
  }

  void wait(Lane const& lane) override {
    for (int t = 1; t <= std::ssize(transits_); ++t) finish(lane, (turn_ + t) % static_cast<int>(transits_.size()));
    shards_.wait();
  }
  DType type() const override { return dtype_of<G>; }
  void* reduced(int piece) const override { return shards_.present(piece); }
  void turn() override { shards_.turn(); }
  void* former(int piece) const override { return shards_.former(piece); }

private:
  static constexpr bool rounds = !std::is_same_v<G, float>;
  /// A block's gradient on its way to the ranks' shards: ranks exchange it while the next units are computed.
  struct Transit {
    int block = -1; // none
    SumStep step;   // of its micro-batch
    Pending pending;
  };

  int next_wire() const { return (turn_ + 1) % static_cast<int>(transits_.size()); }

  /// What ranks exchange in transit t: a wire, or the block's slot.
  G* memory(int t, int block) const {
    if constexpr (rounds) {
      return wires_[t].data();
    } else {
      return slots_.data(block);
    }
  }

  /// The transit that the block's gradient is ready to go with.
  int to_transit(Lane const& lane, int number) {
    if constexpr (rounds) {
      turn_ = next_wire();
      finish(lane, turn_);
      shards_.release(lane); // copies out of the wire
      convert(lane, wires_[turn_].data(), slots_.data(number), partitions_[number].size());
      return turn_;
    } else {
      return slots_.slot_of(number);
    }
  }

  void finish(Lane const& lane, int t) {
    Transit& transit = transits_[t];
    if (transit.block < 0) return;
    transit.pending.wait(lane);
    shards_.deliver(lane, transit.block, memory(t, transit.block), transit.step);
    transit.block = -1;
  }

  SumOrder order_;
  std::int64_t micro_batches_;
  Collectives& collectives_;
  GradShards<G> shards_;
  GradSlots slots_;
  MicroBatchPlace place_;
  std::vector<Partition> partitions_;
  std::vector<std::string> names_; // of blocks
  std::vector<DeviceBuffer<G>> wires_;
  std::vector<Transit> transits_; // by wire or slot
  int turn_ = 0;                  // the wire that was taken last
};

} // namespace

std::unique_ptr<GradStore> make_grad_store(Plan const& plan, DType compute, ModelLayout const& layout,
                                           std::vector<UnitUses> const& uses, Collectives& collectives, Ledger& ledger,
                                           LinkTraffic& link) {
  auto const make = [&]<class G>(G) -> std::unique_ptr<GradStore> {
    if (plan.gradients() == Plan::Keep::whole) {
      return std::make_unique<FullGrads<G>>(plan, layout, uses, collectives, ledger, link);
    }
    return std::make_unique<ShardedGrads<G>>(plan, layout, uses, collectives, ledger, link);
  };
  return with_float_type(plan.gradients_as_computed() ? compute : DType::f32, make);
}

} // namespace kozero
