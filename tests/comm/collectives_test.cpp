#include "comm/mpi_collectives.hpp"
#include "comm/nccl.hpp"
#include "comm/rank_values.hpp"
#include "support/world.hpp"

#include <functional>

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr std::int64_t ample_staging_bytes = std::int64_t{1} << 20;

// So little staging memory that arrays of some hundred elements need many rounds.
std::int64_t scarce_staging_bytes() { return std::int64_t{4} * 8 * make_world_ranks()->size() * 11; }

/// By NCCL, or what stands in for it: in one level, and in two as if hosts had 2 or 4 ranks each.
void on_each_nccl_group(std::function<void(Group const&)> const& body, bool in_two_levels = true) {
  MpiRanks ranks;
  for (int const ranks_of_host : {ranks.size(), 2, 4}) {
    RankHosts const hosts = RankHosts::runs_of(ranks_of_host, ranks.size());
    if (ranks_of_host != ranks.size() && (!in_two_levels || !hosts.ranks_of_each())) continue;
    for (std::int64_t const bytes : {ample_staging_bytes, scarce_staging_bytes()}) {
      INFO("NCCL, hosts of " << ranks_of_host << ", through " << bytes << " bytes");
      Ledger ledger;
      auto const shared = std::make_shared<MessageLane>(bytes);
      auto const collectives = make_nccl_collectives(ranks, ledger, shared, {.hosts = hosts});
      body({ranks, *collectives});
      CHECK(ledger.peak_bytes(Space::device) <= bytes);
    }
  }
}

// Runs a test on every kind of group that there is for this number of ranks; by NCCL alone, where the program has it.
void on_each_group(std::function<void(Group const&)> const& body) {
  if (built_with_nccl()) return on_each_nccl_group(body);
  using Device = MpiOptions::DeviceAccess;
  std::int64_t const scarce = scarce_staging_bytes();
  for (MpiOptions const& options :
       {MpiOptions{ample_staging_bytes, Device::reached}, MpiOptions{scarce, Device::reached},
        MpiOptions{scarce, Device::staged}, MpiOptions{ample_staging_bytes, Device::staged},
        MpiOptions{scarce, Device::aware}, MpiOptions{ample_staging_bytes, Device::aware}}) {
    if (options.device != Device::staged && !host_reaches_device) continue; // nor does any MPI library here
    INFO("staging " << options.staging_bytes << " bytes, device memory " << static_cast<int>(options.device));
    Ledger ledger;
    MpiRanks ranks;
    MpiCollectives collectives(ranks, ledger, options);
    body({ranks, collectives});
    // However large the arrays were.
    CHECK(ledger.peak_bytes(Space::pinned) <= options.staging_bytes);
    if (ranks.size() == 1 && options.staging_bytes == scarce) {
      INFO("self");
      Alone alone;
      body(alone);
    }
  }
}

std::vector<std::int64_t> sizes_for(int ranks) {
  return {0, 1, 7, 8, 9, ranks - 1, ranks, 8 * ranks, 8 * ranks + 1, 177, 1003};
}

std::int64_t sum_over(Ranks& ranks, std::int64_t value) {
  ranks.sum(std::span(&value, 1));
  return value;
}

} // namespace

TEMPLATE_TEST_CASE("all_gather brings every shard to every rank", "", float, bf16, fp16, double, std::int64_t) {
  on_each_group([](Group const& group) {
    Lane const lane;
    for (std::int64_t const size : sizes_for(group.size())) {
      INFO("size " << size);
      Partition const partition(size, group.size());
      GuardedArray<TestType> array(size);
      fill_shard(array, 1, partition.shard(group.rank()));
      group.collectives.all_gather(lane, array.span(), partition, Traffic::parameters).wait(lane);
      require_gathered(array, 1);
    }
  });
}

TEMPLATE_TEST_CASE("reduce_scatter leaves the tree's sum in the own shard", "", float, bf16, fp16, double,
                   std::int64_t) {
  on_each_group([](Group const& group) {
    Lane const lane;
    for (std::int64_t const size : sizes_for(group.size())) {
      INFO("size " << size);
      Partition const partition(size, group.size());
      GuardedArray<TestType> array(size);
      fill_addends(array, 2, group.rank());
      group.collectives.reduce_scatter(lane, array.span(), partition, Traffic::gradients).wait(lane);
      require_summed(array, 2, group.size(), partition.shard(group.rank()));
    }
  });
}

TEMPLATE_TEST_CASE("all_reduce gives every rank the bits of reduce_scatter", "", float, bf16, fp16, double,
                   std::int64_t) {
  on_each_group([](Group const& group) {
    Lane const lane;
    for (std::int64_t const size : sizes_for(group.size())) {
      INFO("size " << size);
      Partition const partition(size, group.size());
      GuardedArray<TestType> array(size);
      fill_addends(array, 3, group.rank());
      group.collectives.all_reduce(lane, array.span(), partition, Traffic::gradients).wait(lane);
      require_summed(array, 3, group.size(), {0, size});
    }
  });
}

TEMPLATE_TEST_CASE("all memories, and arrays with room for padding", "", DeviceMemory, HostMemory, PinnedMemory) {
  on_each_group([](Group const& group) {
    Lane const lane;
    Partition const partition(177, group.size());
    GuardedArray<float, TestType> array(partition.capacity());
    fill_addends(array, 4, group.rank());
    group.collectives.all_reduce(lane, array.span(), partition, Traffic::gradients).wait(lane);
    require_summed(array, 4, group.size(), {0, partition.size()});
    std::vector<float> const values = array.get();
    std::int64_t touched = 0;
    for (std::int64_t i = partition.size(); i < partition.capacity(); ++i) {
      touched += !same_bits(values[i], addend<float>(4, group.rank(), i));
    }
    if (!built_with_nccl()) REQUIRE(touched == 0); // whose parts of equal size move as they are; it means nothing
  });
}

TEST_CASE("an array larger than the default staging memory is summed in rounds") {
  Ledger ledger;
  MpiRanks ranks;
  MpiCollectives collectives(ranks, ledger);
  Group const group{ranks, collectives};
  Lane const lane;
  std::int64_t const size = MpiOptions().staging_bytes / 4 + 1'000'003;
  Partition const partition(size, group.size());
  std::vector<float> values(static_cast<std::size_t>(size), static_cast<float>(group.rank() + 1));
  values.back() = 0.5f;
  DeviceArray const array(values);
  group.collectives.all_reduce(lane, {array.data(), size, DType::f32, Space::device}, partition, Traffic::gradients)
      .wait(lane);
  values = array.get();
  auto const n = static_cast<float>(group.size());
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) wrong += values[i] != n * (n + 1) / 2;
  CHECK(wrong == 0);
  CHECK(values.back() == n / 2);
  CHECK(ledger.peak_bytes(Space::pinned) <= MpiOptions().staging_bytes);
}

TEST_CASE("broadcast from every root") {
  on_each_group([](Group const& group) {
    Lane const lane;
    for (int root = 0; root < group.size(); ++root) {
      for (std::int64_t const size : {0, 1, 1003}) {
        GuardedArray<bf16> array(size);
        auto const stream = static_cast<std::uint32_t>(5 + root);
        fill_shard(array, stream, group.rank() == root ? Interval{0, size} : Interval{0, 0});
        group.collectives.broadcast(lane, array.span(), root, Traffic::control).wait(lane);
        require_gathered(array, stream);
      }
    }
  });
}

TEST_CASE("traffic counts what a rank receives, to the element") {
  auto const look = [](Group const& group) {
    Lane const lane;
    std::int64_t const n = group.size();
    for (std::int64_t const size : {0, 5, 177, 1697}) {
      Partition const partition(size, group.size());
      std::int64_t const own = partition.shard(group.rank()).size();
      GuardedArray<bf16> params(size);
      GuardedArray<float> grads(size);
      fill_addends(grads, 6, group.rank());
      group.ranks.traffic() = TrafficLedger();
      group.collectives.all_gather(lane, params.span(), partition, Traffic::parameters).wait(lane);
      group.collectives.reduce_scatter(lane, grads.span(), partition, Traffic::gradients).wait(lane);
      auto const gathered = group.ranks.traffic()[Traffic::parameters];
      auto const reduced = group.ranks.traffic()[Traffic::gradients];
      CHECK(gathered.elements == size - own);
      CHECK(gathered.bytes == 2 * (size - own));
      CHECK(reduced.elements == (n - 1) * own);
      CHECK(reduced.bytes == 4 * (n - 1) * own);
      CHECK(group.ranks.traffic()[Traffic::control].elements == 0);
      // Over all ranks: (N-1)/N of the array a rank, for each of the two.
      CHECK(sum_over(group.ranks, gathered.elements + reduced.elements) == 2 * (n - 1) * size);

      group.ranks.traffic() = TrafficLedger();
      group.collectives.all_reduce(lane, grads.span(), partition, Traffic::gradients).wait(lane);
      group.collectives.broadcast(lane, params.span(), 0, Traffic::parameters).wait(lane);
      CHECK(group.ranks.traffic()[Traffic::gradients].elements == size - own + (n - 1) * own);
      CHECK(group.ranks.traffic()[Traffic::parameters].elements == (group.rank() == 0 ? 0 : size));
    }
  };
  if (built_with_nccl()) {
    on_each_nccl_group(look, false);
  } else {
    on_each_group(look);
  }
}

TEST_CASE("a collective that nobody waits for is finished by its end of life, or by the next in its place") {
  on_each_group([](Group const& group) {
    Lane const lane;
    Partition const partition(1003, group.size());
    GuardedArray<float> first(1003);
    GuardedArray<float> second(1003);
    fill_shard(first, 20, partition.shard(group.rank()));
    fill_shard(second, 21, partition.shard(group.rank()));
    {
      Pending pending = group.collectives.all_gather(lane, first.span(), partition, Traffic::parameters);
      pending = group.collectives.all_gather(lane, second.span(), partition, Traffic::parameters);
      require_gathered(first, 20);
    }
    require_gathered(second, 21);
  });
}

TEST_CASE("small host values: sums with one order, gathered values and texts, a text from any root") {
  on_each_group([](Group const& group) {
    std::vector<double> reals;
    std::vector<std::int64_t> integers;
    for (int i = 0; i < 13; ++i) {
      reals.push_back(addend<double>(30, group.rank(), i));
      integers.push_back(addend<std::int64_t>(31, group.rank(), i));
    }
    group.ranks.sum(std::span(reals));
    group.ranks.sum(std::span(integers));
    group.ranks.sum(std::span<double>());
    for (int i = 0; i < 13; ++i) {
      CHECK(same_bits(reals[static_cast<std::size_t>(i)], sum_over_ranks<double>(30, group.size(), i)));
      CHECK(integers[static_cast<std::size_t>(i)] == sum_over_ranks<std::int64_t>(31, group.size(), i));
    }

    auto const values = group.ranks.gather(std::int64_t{100} + group.rank());
    auto const texts =
        group.ranks.gather(std::string(static_cast<std::size_t>(9 * group.rank()), 'x') + std::string("\n\0 end", 6));
    auto const nothing = group.ranks.gather(std::string());
    REQUIRE(static_cast<int>(values.size()) == group.size());
    REQUIRE(static_cast<int>(texts.size()) == group.size());
    REQUIRE(static_cast<int>(nothing.size()) == group.size());
    for (int r = 0; r < group.size(); ++r) {
      auto const at = static_cast<std::size_t>(r);
      CHECK(values[at] == 100 + r);
      CHECK(texts[at] == std::string(9 * at, 'x') + std::string("\n\0 end", 6));
      CHECK(nothing[at].empty());
    }

    for (int root = 0; root < group.size(); ++root) {
      for (std::string const& sent : {std::string("deck: ü\n"), std::string(), std::string(5000, 'y')}) {
        std::string text = group.rank() == root ? sent : "something else";
        group.ranks.broadcast(text, root);
        CHECK(text == sent);
      }
    }
    group.ranks.barrier();
  });
}

TEST_CASE("small host values count as control") {
  on_each_group([](Group const& group) {
    group.ranks.traffic() = TrafficLedger();
    std::vector<double> values(3, 1.0);
    group.ranks.sum(std::span(values));
    CHECK(group.ranks.traffic()[Traffic::control].bytes == 3 * 8 * (group.size() - 1));
    CHECK(group.ranks.traffic()[Traffic::parameters].bytes == 0);
    CHECK(group.ranks.traffic()[Traffic::gradients].bytes == 0);
  });
}

TEST_CASE_METHOD(World, "the world is self for one rank and takes the staging memory that it says") {
  CHECK((world.ranks.description() == "self") == (world.size() == 1));
  Space const space = built_with_nccl() ? Space::device : Space::pinned;
  std::int64_t const all = built_with_nccl() ? MessageLane::default_bytes : MpiOptions().staging_bytes;
  std::int64_t const wanted = world.size() == 1 ? 0 : all;
  CHECK(ledger.bytes(space, Category::staging) <= wanted);
  CHECK(ledger.bytes(space, Category::staging) * 100 >= 99 * wanted);
}

TEST_CASE("an MPI error becomes an exception that names the call, on all ranks") {
  MpiRanks ranks;
  CHECK(ranks.description().rfind("MPI (", 0) == 0);
  std::string text;
  std::string message;
  try {
    ranks.broadcast(text, ranks.size());
  } catch (Error const& error) {
    message = error.what();
  }
  CHECK(message.rfind("MPI_Ibcast failed (", 0) == 0);
}

TEST_CASE("staging memory too small for the ranks is refused") {
  Ledger ledger;
  MpiRanks ranks;
  CHECK_THROWS_AS(MpiCollectives(ranks, ledger, MpiOptions{16, MpiOptions::DeviceAccess::reached}), Error);
}

TEST_CASE("a pending collective is abandoned while an exception unwinds, and finished once otherwise") {
  struct Counting final : Pending::Work {
    explicit Counting(int& n) : finished(n) {}
    void finish(Lane const&) override { ++finished; }
    bool done() const override { return false; }
    std::int64_t arrived_bytes() const override { return 0; }
    void release() override { ++released; }
    int& finished;
    int released = 0;
  };
  int finished = 0;
  Counting work(finished);
  { Pending const pending(work); }
  CHECK(finished == 1);
  CHECK(work.released == 1);
  try {
    Pending const pending(work);
    throw Error("a rank is gone");
  } catch (Error const&) {
  }
  CHECK(finished == 1);
  CHECK(work.released == 2);
  Pending first(work);
  Pending second = std::move(first);
  second.wait(Lane());
  second.wait(Lane());
  CHECK(finished == 2);
  CHECK(work.released == 3);
}
