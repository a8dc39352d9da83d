#include "comm/mpi_comm.hpp"
#include "comm/rank_values.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

// Numbers that are the same on all ranks.
class Dice {
public:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_bits({99, RngPurpose::shuffle}, index_++)[0]) % n;
  }

private:
  std::uint64_t index_ = 0;
};

// Gathers in flight; the oldest ends first, or the newest.
template <class T>
struct Flight {
  GuardedArray<T> array;
  std::uint32_t stream;
  Pending pending;
};

class Player {
public:
  virtual ~Player() = default;
  virtual void start_gather(std::uint32_t stream, std::int64_t size) = 0;
  virtual void land(std::int64_t number) = 0;
  virtual void reduce_scatter(std::uint32_t stream, std::int64_t size) = 0;
  virtual void all_reduce(std::uint32_t stream, std::int64_t size) = 0;
  virtual bool in_flight() const = 0;
};

template <class T>
class TypedPlayer final : public Player {
public:
  explicit TypedPlayer(Communicator& comm) : comm_(comm) {}

  void start_gather(std::uint32_t stream, std::int64_t size) override {
    Partition const partition(size, comm_.size());
    flights_.push_back({GuardedArray<T>(size), stream, {}});
    Flight<T>& flight = flights_.back();
    fill_shard(flight.array, stream, partition.shard(comm_.rank()));
    flight.pending = comm_.all_gather(lane_, flight.array.span(), partition, Traffic::parameters);
  }

  void land(std::int64_t number) override {
    if (flights_.empty()) return;
    auto const at = flights_.begin() + number % static_cast<std::int64_t>(flights_.size());
    at->pending.wait(lane_);
    require_gathered(at->array, at->stream);
    flights_.erase(at);
  }

  void reduce_scatter(std::uint32_t stream, std::int64_t size) override {
    Partition const partition(size, comm_.size());
    GuardedArray<T> array(size);
    fill_addends(array, stream, comm_.rank());
    comm_.reduce_scatter(lane_, array.span(), partition, Traffic::gradients).wait(lane_);
    require_summed(array, stream, comm_.size(), partition.shard(comm_.rank()));
  }

  void all_reduce(std::uint32_t stream, std::int64_t size) override {
    GuardedArray<T> array(size);
    fill_addends(array, stream, comm_.rank());
    comm_.all_reduce(lane_, array.span(), Partition(size, comm_.size()), Traffic::gradients).wait(lane_);
    require_summed(array, stream, comm_.size(), {0, size});
  }

  bool in_flight() const override { return !flights_.empty(); }

private:
  Communicator& comm_;
  Lane lane_;
  std::deque<Flight<T>> flights_;
};

} // namespace

TEST_CASE("a long random sequence of collectives gives what each gives alone") {
  for (auto const device : {MpiCommOptions::DeviceMemory::reached, MpiCommOptions::DeviceMemory::staged}) {
    if (device == MpiCommOptions::DeviceMemory::reached && !host_reaches_device) continue;
    Ledger ledger;
    MpiComm comm(ledger, {16384, device});
    std::vector<std::unique_ptr<Player>> players;
    players.push_back(std::make_unique<TypedPlayer<float>>(comm));
    players.push_back(std::make_unique<TypedPlayer<bf16>>(comm));
    players.push_back(std::make_unique<TypedPlayer<fp16>>(comm));
    players.push_back(std::make_unique<TypedPlayer<double>>(comm));
    Dice dice;
    for (std::uint32_t turn = 0; turn < 600; ++turn) {
      std::int64_t const magnitude = std::int64_t{1} << dice.below(13);
      std::int64_t const size = dice.below(magnitude);
      Player& player = *players[static_cast<std::size_t>(dice.below(4))];
      switch (dice.below(6)) {
      case 0:
      case 1: player.start_gather(turn, size); break;
      case 2: player.reduce_scatter(turn, size); break;
      case 3: player.all_reduce(turn, size); break;
      default: player.land(dice.below(100));
      }
    }
    for (auto& player : players) {
      while (player->in_flight()) player->land(0);
    }
  }
}
