// Long random sequences of collectives in several groups: each rank starts them in one order and gets on as it likes.
#include "comm/mpi_collectives.hpp"
#include "comm/nccl.hpp"
#include "comm/rank_values.hpp"
#include "support/world.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

class Dice {
public:
  explicit Dice(std::uint32_t seed) : seed_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_bits({99, RngPurpose::shuffle, seed_}, index_++)[0]) % n;
  }

private:
  std::uint32_t seed_;
  std::uint64_t index_ = 0;
};

/// A collective that was started; land() waits for it and looks at what it did.
class Flight {
public:
  virtual ~Flight() = default;
  virtual void land() = 0;
};

enum class Kind { all_gather, reduce_scatter, all_reduce };

template <class T>
class TypedFlight final : public Flight {
public:
  TypedFlight(Kind kind, Group const& group, std::uint32_t stream, std::int64_t size)
      : kind_(kind), group_(group), stream_(stream), partition_(size, group.size()), array_(size) {
    Collectives& collectives = group.collectives;
    if (kind == Kind::all_gather) {
      fill_shard(array_, stream, own());
      pending_ = collectives.all_gather(lane_, array_.span(), partition_, Traffic::parameters);
    } else {
      fill_addends(array_, stream, group.rank());
      pending_ = kind == Kind::reduce_scatter
                     ? collectives.reduce_scatter(lane_, array_.span(), partition_, Traffic::gradients)
                     : collectives.all_reduce(lane_, array_.span(), partition_, Traffic::gradients);
    }
  }
  void land() override {
    pending_.wait(lane_);
    if (kind_ == Kind::all_gather) return require_gathered(array_, stream_);
    require_summed(array_, stream_, group_.size(), kind_ == Kind::all_reduce ? Interval{0, array_.size()} : own());
  }

private:
  Interval own() const { return partition_.shard(group_.rank()); }

  Lane lane_;
  Kind kind_;
  Group group_;
  std::uint32_t stream_;
  Partition partition_;
  GuardedArray<T> array_;
  Pending pending_;
};

std::unique_ptr<Flight> start(std::int64_t type, Kind kind, Group const& group, std::uint32_t stream,
                              std::int64_t size) {
  switch (type) {
  case 0: return std::make_unique<TypedFlight<float>>(kind, group, stream, size);
  case 1: return std::make_unique<TypedFlight<bf16>>(kind, group, stream, size);
  case 2: return std::make_unique<TypedFlight<fp16>>(kind, group, stream, size);
  default: return std::make_unique<TypedFlight<double>>(kind, group, stream, size);
  }
}

/// The world, its halves, and groups across them, with little staging memory each.
struct Groups {
  Groups(MpiRanks& world, MpiOptions const& options) {
    add(world, options);
    int const n = world.size();
    std::vector<int> half, across;
    for (int rank = 0; rank < n; ++rank) {
      if (rank % 2 == world.rank() % 2) half.push_back(rank);
      if (rank % (n / 2) == world.rank() % (n / 2)) across.push_back(rank);
    }
    for (auto const& members : {half, across}) add(*split.emplace_back(world.split(members)), options);
  }
  void add(Ranks& ranks, MpiOptions const& options) {
    auto* const several = dynamic_cast<MpiRanks*>(&ranks);
    if (several && built_with_nccl()) {
      RankHosts const hosts = RankHosts::runs_of(2, ranks.size());
      collectives.push_back(make_nccl_collectives(ranks, ledger, shared, {.hosts = hosts}));
    } else if (several) {
      collectives.push_back(std::make_unique<MpiCollectives>(*several, ledger, options));
    } else {
      collectives.push_back(ranks.make_collectives(ledger));
    }
    groups.push_back({ranks, *collectives.back()});
  }

  Ledger ledger;
  std::shared_ptr<MessageLane> shared = std::make_shared<MessageLane>(16384);
  std::vector<std::unique_ptr<Ranks>> split;
  std::vector<std::unique_ptr<Collectives>> collectives;
  std::vector<Group> groups;
};

} // namespace

TEST_CASE("a long random sequence of collectives in several groups gives what each gives alone") {
  using Device = MpiOptions::DeviceAccess;
  for (Device const device : {Device::reached, Device::staged, Device::aware}) {
    if (device != Device::staged && !host_reaches_device) continue;
    MpiRanks world;
    Groups const groups(world, {16384, device});
    Dice common(1);                                           // what all ranks do alike
    Dice own(static_cast<std::uint32_t>(100 + world.rank())); // what each does as it likes
    std::deque<std::unique_ptr<Flight>> flights;
    auto const land = [&](std::int64_t number) {
      auto const at = flights.begin() + number;
      (*at)->land();
      flights.erase(at);
    };
    for (std::uint32_t turn = 0; turn < 400; ++turn) {
      std::int64_t const size = common.below(std::int64_t{1} << common.below(13));
      auto const type = common.below(4);
      auto const kind = static_cast<Kind>(common.below(3));
      Group const& group = groups.groups[static_cast<std::size_t>(common.below(3))];
      bool const control = common.below(20) == 0;
      flights.push_back(start(type, kind, group, turn, size));
      if (control) {
        std::int64_t one = 1;
        world.sum(std::span(&one, 1));
        CHECK(one == world.size());
      }
      for (std::int64_t times = own.below(5); times > 0; --times) groups.groups[0].collectives.progress();
      while (std::ssize(flights) > own.below(12)) land(own.below(std::ssize(flights)));
    }
    while (!flights.empty()) land(own.below(std::ssize(flights)));
  }
}
