#include "comm/mpi_comm.hpp"
#include "comm/rank_values.hpp"
#include "comm/self_comm.hpp"
#include "comm/world.hpp"

#include <functional>

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr std::int64_t ample_staging_bytes = std::int64_t{1} << 20;

// So little staging memory that arrays of some hundred elements need many rounds.
std::int64_t scarce_staging_bytes() {
  Ledger ledger;
  return std::int64_t{4} * 8 * MpiComm(ledger, {ample_staging_bytes}).size() * 11;
}

// Runs a test on every kind of communicator that there is for this number of ranks.
void on_each_communicator(std::function<void(Communicator&)> const& body) {
  using Device = MpiCommOptions::DeviceMemory;
  std::int64_t const scarce = scarce_staging_bytes();
  for (MpiCommOptions const& options :
       {MpiCommOptions{ample_staging_bytes, Device::reached}, MpiCommOptions{scarce, Device::reached},
        MpiCommOptions{scarce, Device::staged}, MpiCommOptions{ample_staging_bytes, Device::staged}}) {
    if (options.device == Device::reached && !host_reaches_device) continue;
    INFO("staging " << options.staging_bytes << " bytes, device memory "
                    << (options.device == Device::staged ? "staged" : "reached"));
    Ledger ledger;
    MpiComm comm(ledger, options);
    body(comm);
    // However large the arrays were.
    CHECK(ledger.peak_bytes(Space::pinned) <= options.staging_bytes);
    if (comm.size() == 1 && options.staging_bytes == scarce) {
      INFO("self");
      SelfComm self;
      body(self);
    }
  }
}

std::vector<std::int64_t> sizes_for(int ranks) {
  return {0, 1, 7, 8, 9, ranks - 1, ranks, 8 * ranks, 8 * ranks + 1, 177, 1003};
}

std::int64_t sum_over(Communicator& comm, std::int64_t value) {
  comm.sum(std::span(&value, 1));
  return value;
}

} // namespace

TEMPLATE_TEST_CASE("all_gather brings every shard to every rank", "", float, bf16, fp16, double, std::int64_t) {
  on_each_communicator([](Communicator& comm) {
    Lane const lane;
    for (std::int64_t const size : sizes_for(comm.size())) {
      INFO("size " << size);
      Partition const partition(size, comm.size());
      GuardedArray<TestType> array(size);
      fill_shard(array, 1, partition.shard(comm.rank()));
      comm.all_gather(lane, array.span(), partition, Traffic::parameters).wait(lane);
      require_gathered(array, 1);
    }
  });
}

TEMPLATE_TEST_CASE("reduce_scatter leaves the tree's sum in the own shard", "", float, bf16, fp16, double,
                   std::int64_t) {
  on_each_communicator([](Communicator& comm) {
    Lane const lane;
    for (std::int64_t const size : sizes_for(comm.size())) {
      INFO("size " << size);
      Partition const partition(size, comm.size());
      GuardedArray<TestType> array(size);
      fill_addends(array, 2, comm.rank());
      comm.reduce_scatter(lane, array.span(), partition, Traffic::gradients).wait(lane);
      require_summed(array, 2, comm.size(), partition.shard(comm.rank()));
    }
  });
}

TEMPLATE_TEST_CASE("all_reduce gives every rank the bits of reduce_scatter", "", float, bf16, fp16, double,
                   std::int64_t) {
  on_each_communicator([](Communicator& comm) {
    Lane const lane;
    for (std::int64_t const size : sizes_for(comm.size())) {
      INFO("size " << size);
      Partition const partition(size, comm.size());
      GuardedArray<TestType> array(size);
      fill_addends(array, 3, comm.rank());
      comm.all_reduce(lane, array.span(), partition, Traffic::gradients).wait(lane);
      require_summed(array, 3, comm.size(), {0, size});
    }
  });
}

TEMPLATE_TEST_CASE("all memories, and arrays with room for padding", "", DeviceMemory, HostMemory, PinnedMemory) {
  on_each_communicator([](Communicator& comm) {
    Lane const lane;
    Partition const partition(177, comm.size());
    GuardedArray<float, TestType> array(partition.capacity());
    fill_addends(array, 4, comm.rank());
    comm.all_reduce(lane, array.span(), partition, Traffic::gradients).wait(lane);
    require_summed(array, 4, comm.size(), {0, partition.size()});
    std::vector<float> const values = array.get();
    std::int64_t touched = 0;
    for (std::int64_t i = partition.size(); i < partition.capacity(); ++i) {
      touched += !same_bits(values[i], addend<float>(4, comm.rank(), i));
    }
    REQUIRE(touched == 0);
  });
}

TEST_CASE("an array larger than the default staging memory is summed in rounds") {
  Ledger ledger;
  MpiComm comm(ledger);
  Lane const lane;
  std::int64_t const size = MpiCommOptions().staging_bytes / 4 + 1'000'003;
  Partition const partition(size, comm.size());
  std::vector<float> values(static_cast<std::size_t>(size), static_cast<float>(comm.rank() + 1));
  values.back() = 0.5f;
  DeviceArray const array(values);
  comm.all_reduce(lane, {array.data(), size, DType::f32, Space::device}, partition, Traffic::gradients).wait(lane);
  values = array.get();
  auto const n = static_cast<float>(comm.size());
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) wrong += values[i] != n * (n + 1) / 2;
  CHECK(wrong == 0);
  CHECK(values.back() == n / 2);
  CHECK(ledger.peak_bytes(Space::pinned) <= MpiCommOptions().staging_bytes);
}

TEST_CASE("broadcast from every root") {
  on_each_communicator([](Communicator& comm) {
    Lane const lane;
    for (int root = 0; root < comm.size(); ++root) {
      for (std::int64_t const size : {0, 1, 1003}) {
        GuardedArray<bf16> array(size);
        auto const stream = static_cast<std::uint32_t>(5 + root);
        fill_shard(array, stream, comm.rank() == root ? Interval{0, size} : Interval{0, 0});
        comm.broadcast(lane, array.span(), root, Traffic::control).wait(lane);
        require_gathered(array, stream);
      }
    }
  });
}

TEST_CASE("traffic counts what a rank receives, to the element") {
  on_each_communicator([](Communicator& comm) {
    Lane const lane;
    std::int64_t const n = comm.size();
    for (std::int64_t const size : {0, 5, 177, 1697}) {
      Partition const partition(size, comm.size());
      std::int64_t const own = partition.shard(comm.rank()).size();
      GuardedArray<bf16> params(size);
      GuardedArray<float> grads(size);
      fill_addends(grads, 6, comm.rank());
      comm.traffic() = TrafficLedger();
      comm.all_gather(lane, params.span(), partition, Traffic::parameters).wait(lane);
      comm.reduce_scatter(lane, grads.span(), partition, Traffic::gradients).wait(lane);
      auto const gathered = comm.traffic()[Traffic::parameters];
      auto const reduced = comm.traffic()[Traffic::gradients];
      CHECK(gathered.elements == size - own);
      CHECK(gathered.bytes == 2 * (size - own));
      CHECK(reduced.elements == (n - 1) * own);
      CHECK(reduced.bytes == 4 * (n - 1) * own);
      CHECK(comm.traffic()[Traffic::control].elements == 0);
      // Over all ranks: (N-1)/N of the array a rank, for each of the two.
      CHECK(sum_over(comm, gathered.elements + reduced.elements) == 2 * (n - 1) * size);

      comm.traffic() = TrafficLedger();
      comm.all_reduce(lane, grads.span(), partition, Traffic::gradients).wait(lane);
      comm.broadcast(lane, params.span(), 0, Traffic::parameters).wait(lane);
      CHECK(comm.traffic()[Traffic::gradients].elements == size - own + (n - 1) * own);
      CHECK(comm.traffic()[Traffic::parameters].elements == (comm.rank() == 0 ? 0 : size));
    }
  });
}

TEST_CASE("several all_gathers may be in flight, and end in any order") {
  on_each_communicator([](Communicator& comm) {
    Lane const lane;
    std::vector<GuardedArray<float>> arrays;
    std::vector<Pending> pending;
    for (std::int64_t const size : {1003, 0, 177, 8, 20000, 1}) arrays.emplace_back(size);
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      Partition const partition(arrays[a].size(), comm.size());
      fill_shard(arrays[a], static_cast<std::uint32_t>(10 + a), partition.shard(comm.rank()));
      pending.push_back(comm.all_gather(lane, arrays[a].span(), partition, Traffic::parameters));
    }
    // Sums and small values may pass between.
    GuardedArray<float> sums(333);
    fill_addends(sums, 16, comm.rank());
    comm.all_reduce(lane, sums.span(), Partition(333, comm.size()), Traffic::gradients).wait(lane);
    require_summed(sums, 16, comm.size(), {0, 333});
    CHECK(sum_over(comm, 1) == comm.size());
    for (std::size_t a = arrays.size(); a-- > 0;) {
      pending[a].wait(lane);
      pending[a].wait(lane);
      require_gathered(arrays[a], static_cast<std::uint32_t>(10 + a));
    }
  });
}

TEST_CASE("a collective that nobody waits for is finished by its end of life, or by the next in its place") {
  on_each_communicator([](Communicator& comm) {
    Lane const lane;
    Partition const partition(1003, comm.size());
    GuardedArray<float> first(1003);
    GuardedArray<float> second(1003);
    fill_shard(first, 20, partition.shard(comm.rank()));
    fill_shard(second, 21, partition.shard(comm.rank()));
    {
      Pending pending = comm.all_gather(lane, first.span(), partition, Traffic::parameters);
      pending = comm.all_gather(lane, second.span(), partition, Traffic::parameters);
      require_gathered(first, 20);
    }
    require_gathered(second, 21);
  });
}

TEST_CASE("small host values: sums with one order, gathered values and texts, a text from any root") {
  on_each_communicator([](Communicator& comm) {
    std::vector<double> reals;
    std::vector<std::int64_t> integers;
    for (int i = 0; i < 13; ++i) {
      reals.push_back(addend<double>(30, comm.rank(), i));
      integers.push_back(addend<std::int64_t>(31, comm.rank(), i));
    }
    comm.sum(std::span(reals));
    comm.sum(std::span(integers));
    comm.sum(std::span<double>());
    for (int i = 0; i < 13; ++i) {
      CHECK(same_bits(reals[static_cast<std::size_t>(i)], sum_over_ranks<double>(30, comm.size(), i)));
      CHECK(integers[static_cast<std::size_t>(i)] == sum_over_ranks<std::int64_t>(31, comm.size(), i));
    }

    auto const values = comm.gather(std::int64_t{100} + comm.rank());
    auto const texts =
        comm.gather(std::string(static_cast<std::size_t>(9 * comm.rank()), 'x') + std::string("\n\0 end", 6));
    auto const nothing = comm.gather(std::string());
    REQUIRE(static_cast<int>(values.size()) == comm.size());
    REQUIRE(static_cast<int>(texts.size()) == comm.size());
    REQUIRE(static_cast<int>(nothing.size()) == comm.size());
    for (int r = 0; r < comm.size(); ++r) {
      auto const at = static_cast<std::size_t>(r);
      CHECK(values[at] == 100 + r);
      CHECK(texts[at] == std::string(9 * at, 'x') + std::string("\n\0 end", 6));
      CHECK(nothing[at].empty());
    }

    for (int root = 0; root < comm.size(); ++root) {
      for (std::string const& sent : {std::string("deck: ü\n"), std::string(), std::string(5000, 'y')}) {
        std::string text = comm.rank() == root ? sent : "something else";
        comm.broadcast(text, root);
        CHECK(text == sent);
      }
    }
    comm.barrier();
  });
}

TEST_CASE("small host values count as control") {
  on_each_communicator([](Communicator& comm) {
    comm.traffic() = TrafficLedger();
    std::vector<double> values(3, 1.0);
    comm.sum(std::span(values));
    CHECK(comm.traffic()[Traffic::control].bytes == 3 * 8 * (comm.size() - 1));
    CHECK(comm.traffic()[Traffic::parameters].bytes == 0);
    CHECK(comm.traffic()[Traffic::gradients].bytes == 0);
  });
}

TEST_CASE("the world's communicator is self for one rank and takes the staging memory that it says") {
  Ledger ledger;
  {
    auto const comm = make_world_communicator(ledger);
    CHECK((comm->description() == "self") == (comm->size() == 1));
    std::int64_t const wanted = comm->size() == 1 ? 0 : MpiCommOptions().staging_bytes;
    CHECK(ledger.bytes(Space::pinned, Category::staging) <= wanted);
    CHECK(ledger.bytes(Space::pinned, Category::staging) * 100 >= 99 * wanted);
  }
  CHECK(ledger.bytes(Space::pinned) == 0);
}

TEST_CASE("an MPI error becomes an exception that names the call, on all ranks") {
  Ledger ledger;
  MpiComm comm(ledger);
  CHECK(comm.description().rfind("MPI (", 0) == 0);
  Lane const lane;
  float value = 0;
  std::string message;
  try {
    comm.broadcast(lane, {&value, 1, DType::f32, Space::host}, comm.size(), Traffic::control).wait(lane);
  } catch (Error const& error) {
    message = error.what();
  }
  CHECK(message.rfind("MPI_Ibcast failed (", 0) == 0);
}

TEST_CASE("staging memory too small for the ranks is refused") {
  Ledger ledger;
  CHECK_THROWS_AS(MpiComm(ledger, MpiCommOptions{16, MpiCommOptions::DeviceMemory::reached}), Error);
}

TEST_CASE("a pending collective is abandoned while an exception unwinds, and finished once otherwise") {
  struct Counting final : Pending::Work {
    explicit Counting(int& n) : finished(n) {}
    void finish(Lane const&) override { ++finished; }
    int& finished;
  };
  int finished = 0;
  { Pending const pending(std::make_unique<Counting>(finished)); }
  CHECK(finished == 1);
  try {
    Pending const pending(std::make_unique<Counting>(finished));
    throw Error("a rank is gone");
  } catch (Error const&) {
  }
  CHECK(finished == 1);
  Pending first(std::make_unique<Counting>(finished));
  Pending second = std::move(first);
  second.wait(Lane());
  second.wait(Lane());
  CHECK(finished == 2);
}
