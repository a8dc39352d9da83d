#include "zero/param_store.hpp"

#include "core/launch.hpp"

#include <algorithm>

namespace kozero {

namespace {

template <class T>
Span span_of(DeviceBuffer<T> const& buffer, Partition const& partition, std::string const& block) {
  return {buffer.data(), partition.capacity(), dtype_of<T>, Space::device, block.c_str()};
}

template <class T>
class ResidentParams final : public ParamStore<T> {
public:
  ResidentParams(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses,
                 Collectives& collectives, Ledger& ledger)
      : plan_(plan), uses_(uses), collectives_(collectives), pending_(layout.size()) {
    for (auto const& block : layout) {
      partitions_.push_back(plan.partition(block.size()));
      names_.push_back(block.name());
      blocks_.emplace_back(ledger, Category::parameters, block.name(), partitions_.back().capacity(),
                           DeviceBuffer<T>::Init::none);
    }
  }

  void begin(Visits const&) override {}
  void fetch(Lane const& lane, Visit visit) override {
    for (int const block : uses_[visit.unit].forward) pending_[block].wait(lane);
  }
  Vec<T const> block(int number) const override {
    return make_vec<T const>(blocks_[number].data(), partitions_[number].size());
  }
  T* updated(Piece const& piece) override { return blocks_[piece.block].data() + piece.interval.begin; }

  void settle(Lane const& lane) override {
    for (auto& gather : pending_) gather.wait(lane);
  }
  void publish(Lane const& lane) override {
    if (plan_.optimizer() == Plan::Keep::whole) return;
    for (std::size_t b = 0; b < blocks_.size(); ++b) { // in the order in which they are read
      pending_[b] = collectives_.all_gather(lane, span_of(blocks_[b], partitions_[b], names_[b]), partitions_[b],
                                            Traffic::parameters);
    }
  }

private:
  Plan plan_;
  std::vector<UnitUses> uses_;
  Collectives& collectives_;
  std::vector<Partition> partitions_;
  std::vector<std::string> names_;
  std::vector<DeviceBuffer<T>> blocks_;
  std::vector<Pending> pending_; // of each block
};

/// Units are visited in order, forth and back, so a unit's neighbours have the other parity: blocks of even units
/// share one slot, blocks of odd units the other, and the slot of the next visit is always free. A block that a second
/// unit reads too (a tied embedding) has a slot of its own. What a slot still holds is not gathered again before the
/// next update: the last layer, the head and a shared block cross the turn from forward to backward; the first layer,
/// and with a tied embedding that and the second layer, are there when the next micro-batch begins.
template <class T>
class GatheredParams final : public ParamStore<T> {
public:
  GatheredParams(Plan const& plan, ModelLayout const& layout, std::vector<UnitUses> const& uses,
                 Collectives& collectives, Ledger& ledger)
      : plan_(plan), uses_(uses), collectives_(collectives) {
    std::vector<bool> const shared = shared_blocks(uses);
    slot_of_block_.resize(layout.size());
    std::vector<std::int64_t> slot_capacity(2, 0);
    for (std::size_t b = 0; b < layout.size(); ++b) {
      partitions_.push_back(plan.partition(layout[b].size()));
      names_.push_back(layout[b].name());
      shards_.emplace_back(ledger, Category::parameters, layout[b].name(), partitions_[b].shard_capacity(),
                           DeviceBuffer<T>::Init::none);
      slot_of_block_[b] = static_cast<int>(b % 2);
      if (shared[b]) {
        slot_of_block_[b] = static_cast<int>(slot_capacity.size());
        slot_capacity.push_back(0);
      }
      auto& capacity = slot_capacity[slot_of_block_[b]];
      capacity = std::max(capacity, partitions_[b].capacity());
    }
    for (std::size_t s = 0; s < slot_capacity.size(); ++s) {
      slots_.emplace_back();
      slots_.back().memory = DeviceBuffer<T>(ledger, Category::ring, fmt::format("ring slot {}", s), slot_capacity[s],
                                             DeviceBuffer<T>::Init::none);
    }
  }

  void begin(Visits const& visits) override {
    visits_ = visits;
    next_ = 0;
  }

  void fetch(Lane const& lane, Visit visit) override {
    KOZERO_REQUIRE(next_ < visits_.size() && visits_[next_] == visit,
                   "unit {} was visited out of order (a fault of kozero); please report it", visit.unit);
    for (int const block : blocks_read(next_)) {
      start(lane, block);
      slots_[slot_of_block_[block]].pending.wait(lane);
    }
    ++next_;
    if (next_ < visits_.size()) {
      for (int const block : blocks_read(next_)) start(lane, block);
    }
  }

  Vec<T const> block(int number) const override {
    Slot const& slot = slots_[slot_of_block_[number]];
    KOZERO_ASSERT(slot.block == number);
    return make_vec<T const>(slot.memory.data(), partitions_[number].size());
  }
  T* updated(Piece const& piece) override {
    return shards_[piece.block].data() + (piece.interval.begin - partitions_[piece.block].shard(plan_.rank()).begin);
  }
  void settle(Lane const&) override {} // gathers read copies
  void publish(Lane const&) override {
    for (auto& slot : slots_) slot.block = -1; // what the ring holds is out of date
  }

private:
  struct Slot {
    DeviceBuffer<T> memory;
    int block = -1; // whose elements it holds, or will when `pending` is done
    Pending pending;
  };

  std::vector<int> const& blocks_read(int visit) const {
    UnitUses const& uses = uses_[visits_[visit].unit];
    return visits_[visit].phase == Phase::forward ? uses.forward : uses.backward;
  }

  void start(Lane const& lane, int block) {
    Slot& slot = slots_[slot_of_block_[block]];
    if (slot.block == block) return;
    slot.block = block;
    Partition const& partition = partitions_[block];
    Interval const own = partition.shard(plan_.rank());
    copy(lane, on_device(slot.memory.data() + own.begin), shards_[block].pointer(), own.size());
    slot.pending =
        collectives_.all_gather(lane, span_of(slot.memory, partition, names_[block]), partition, Traffic::parameters);
  }

  Plan plan_;
  std::vector<UnitUses> uses_;
  Collectives& collectives_;
  std::vector<Partition> partitions_;
  std::vector<std::string> names_;
  std::vector<DeviceBuffer<T>> shards_;
  std::vector<int> slot_of_block_;
  std::vector<Slot> slots_;
  Visits visits_;
  int next_ = 0; // of them
};

} // namespace

template <class T>
std::unique_ptr<ParamStore<T>> make_param_store(Plan const& plan, ModelLayout const& layout,
                                                std::vector<UnitUses> const& uses, Collectives& collectives,
                                                Ledger& ledger) {
  if (plan.parameters() == Plan::Keep::whole) {
    return std::make_unique<ResidentParams<T>>(plan, layout, uses, collectives, ledger);
  }
  return std::make_unique<GatheredParams<T>>(plan, layout, uses, collectives, ledger);
}

template std::unique_ptr<ParamStore<float>> make_param_store(Plan const&, ModelLayout const&,
                                                             std::vector<UnitUses> const&, Collectives&, Ledger&);
template std::unique_ptr<ParamStore<bf16>> make_param_store(Plan const&, ModelLayout const&,
                                                            std::vector<UnitUses> const&, Collectives&, Ledger&);
template std::unique_ptr<ParamStore<fp16>> make_param_store(Plan const&, ModelLayout const&,
                                                            std::vector<UnitUses> const&, Collectives&, Ledger&);

} // namespace kozero
