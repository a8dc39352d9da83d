// Plans of runs that no machine at hand could do.
#include "plan/run_plan.hpp"

#include "support/catch.hpp"
#include "support/small_run.hpp"
#include "support/temporary_folder.hpp"

#include "core/format.hpp"
#include "plan/rank_plan.hpp"

#include <chrono>

using namespace kozero;
using namespace kozero::test;

namespace {

Config config_of(ModelConfig const& model, std::int64_t stage) {
  Config config;
  config.model = model;
  config.data.train = "nowhere";
  config.zero.stage = stage;
  return config;
}

/// 7.45e9 parameters.
ModelConfig large_model() {
  return gpt2_model({.layers = 37, .heads = 32, .width = 4096, .context = 1024, .vocabulary = 50257});
}

std::int64_t bytes_of(std::vector<MemoryRow> const& memory, Category category) {
  std::int64_t bytes = 0;
  for (auto const& row : memory) bytes += row.category == category ? row.bytes : 0;
  return bytes;
}

} // namespace

TEST_CASE("the paper's table: 7.5B parameters on 64 ranks take 120, 31.4, 16.6 and 1.9 GB") {
  PlanRecord const plan = plan_run(config_of(tiny_model(), 0), {});
  CHECK(plan.paper_parameters == 7.5e9);
  CHECK(plan.paper_ranks == 64);
  CHECK(plan.paper_bytes[0] == Approx(120e9));
  CHECK(plan.paper_bytes[1] == Approx(31.40625e9));
  CHECK(plan.paper_bytes[2] == Approx(16.640625e9));
  CHECK(plan.paper_bytes[3] == Approx(1.875e9));
  std::string const text = plan_text(plan);
  INFO(text);
  CHECK(contains(text, {"120 GB = 16Ψ", "31.4 GB = 4Ψ + 12Ψ/N", "16.6 GB = 2Ψ + 14Ψ/N", "1.9 GB = 16Ψ/N"}));
}

TEST_CASE("a plan of a large model is made at once, and has the bytes of the table of stages") {
  auto const start = std::chrono::steady_clock::now();
  PlanRecord const plan = plan_run(config_of(large_model(), 3), {.micro = 1, .accumulate = 2, .ranks = 64});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(plan.chosen == 3);
  auto const psi = static_cast<double>(plan.parameters);
  CHECK(psi == Approx(7.65e9).epsilon(0.01));
  double const n = 64;
  // Rounded up to whole shards, so a little more; 4 bytes of each gradient, and at stages 2 and 3 two slots.
  auto const is = [](std::int64_t bytes, double wanted) { return bytes >= wanted && bytes <= 1.0001 * wanted + 1e5; };
  auto const row = [&](std::size_t number, Category category) {
    return bytes_of(plan.stages[number].memory, category);
  };
  for (Category const state : {Category::master, Category::first_moment, Category::second_moment}) {
    CHECK(row(0, state) == 4 * plan.parameters);
    for (std::size_t number = 1; number <= 3; ++number) CHECK(is(row(number, state), 4 * psi / n));
  }
  for (std::size_t number = 0; number <= 2; ++number) CHECK(is(row(number, Category::parameters), 2 * psi));
  CHECK(is(row(3, Category::parameters), 2 * psi / n));
  for (std::size_t number = 0; number <= 1; ++number) CHECK(is(row(number, Category::gradients), 4 * psi));
  double const layer = 12 * 4096.0 * 4096 + 13 * 4096;
  double const embedding = (50257 + 1024) * 4096.0; // tied: a slot of its own
  for (std::size_t number = 2; number <= 3; ++number) {
    CHECK(is(row(number, Category::gradients), 4 * (psi / n + 2 * layer + embedding)));
  }
  CHECK(row(2, Category::ring) == 0);
  CHECK(is(row(3, Category::ring), 2 * (2 * layer + embedding)));
  CHECK(plan.checkpoint_bytes == 12 * plan.parameters);
}

TEST_CASE("in fp32 only what the host updates has a master beside the parameters") {
  double const n = 64;
  auto const is = [](std::int64_t bytes, double wanted) { return bytes >= wanted && bytes <= 1.0001 * wanted + 1e5; };
  Config config = config_of(large_model(), 1);
  config.precision.compute = ComputeType::fp32;
  PlanRecord const plan = plan_run(config, {.ranks = 64});
  auto const psi = static_cast<double>(plan.parameters);
  double const state[] = {12 * psi, 4 * psi + 8 * psi / n, 4 * psi + 8 * psi / n, 12 * psi / n}; // without gradients
  for (std::size_t number = 0; number <= 3; ++number) {
    auto const& memory = plan.stages[number].memory;
    CAPTURE(number);
    CHECK(bytes_of(memory, Category::master) == 0);
    CHECK(is(bytes_of(memory, Category::parameters) + bytes_of(memory, Category::first_moment) +
                 bytes_of(memory, Category::second_moment),
             state[number]));
  }
  config.offload.optimizer = OffloadTarget::host;
  for (double const ratio : {0.5, 1.0}) {
    config.offload.ratio = ratio;
    PlanRecord const offloaded = plan_run(config, {.ranks = 64});
    for (std::size_t number = 1; number <= 3; ++number) {
      CAPTURE(ratio, number);
      CHECK(bytes_of(offloaded.stages[number].memory, Category::master) == Approx(ratio * 4 * psi / n).epsilon(1e-3));
    }
  }
}

TEST_CASE("the time of a plan grows with the layers, not with their square") {
  ModelConfig model = odd_model();
  gpt2_of(model).layers = 1 << 16; // the most that a deck may ask for
  auto const start = std::chrono::steady_clock::now();
  PlanRecord const plan = plan_run(config_of(model, 3), {.accumulate = 1 << 20, .ranks = 64});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30)); // the square takes minutes
  // Blocks gathered: each twice, but embedding, last layer and head once; from the second micro-batch on embedding and
  // the first two layers are in the ring.
  std::int64_t const micro_batches = 1 << 20;
  CHECK(plan.deck_stage().traffic.parameters.calls ==
        micro_batches * (2 * (gpt2_of(model).layers + 2) - 3) - (micro_batches - 1) * 3);
}

TEST_CASE("rank 0 holds the most") {
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (std::int64_t const ranks : {2, 3, 5, 16}) {
      for (ModelConfig const& model : {odd_model(), tiny_model()}) {
        Config const config = config_of(model, stage);
        auto const bytes = [&](int rank) {
          return budget_bytes(plan_rank(config, {.ranks = ranks}, rank).memory, Space::device);
        };
        for (int rank = 1; rank < ranks; ++rank) CHECK(bytes(rank) <= bytes(0));
      }
    }
  }
}

TEST_CASE("a plan says which limit does not hold, by how much, and what to do; and which stage would fit") {
  Config config = config_of(large_model(), 0);
  BatchShape const batch{.micro = 1, .ranks = 64};
  std::int64_t const needed = budget_bytes(plan_rank(config, batch, 0).memory, Space::device);
  config.memory.device_limit_bytes = needed;
  CHECK(plan_run(config, batch).deck_stage().device_fits);
  config.memory.device_limit_bytes = needed - 1024;
  PlanRecord const plan = plan_run(config, batch);
  CHECK(!plan.stages[0].device_fits);
  CHECK(plan.stages[3].device_fits);
  CHECK(plan.stages[0].host_fits);
  std::string const text = plan_text(plan);
  INFO(text);
  CHECK(contains(
      text, {"memory.device_limit is too small by 1.0 KiB", "smaller with what is not set of zero.stage: 2 or 3"}));
  config.memory.host_limit_bytes = 1000;
  CHECK(!plan_run(config, batch).stages[0].host_fits);
}

TEST_CASE("a stage that the deck's other keys do not go with is refused in its row, the others are planned") {
  Config config = config_of(odd_model(), 1);
  config.offload.optimizer = OffloadTarget::host;
  PlanRecord const plan = plan_run(config, {.ranks = 2});
  CHECK(contains(plan.stages[0].refusal, {"offload.optimizer"}));
  CHECK(plan.stages[0].memory.empty());
  for (std::size_t number = 1; number <= 3; ++number) {
    CHECK(plan.stages[number].refusal.empty());
    CHECK(!plan.stages[number].memory.empty());
  }
  CHECK(contains(plan_text(plan), {"refused"}));
}

TEST_CASE("a model whose bytes cannot be counted is refused") {
  ModelConfig model = large_model();
  gpt2_of(model).layers = 1 << 16;
  gpt2_of(model).width = 1 << 20;
  CHECK(contains(message_of<InputError>([&] { plan_run(config_of(model, 0), {}); }), {"model: ", "; make"}));
}

TEST_CASE("bytes are told in the unit that suits them") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(-1536) == "-1.5 KiB");
  CHECK(format_bytes(32 << 20) == "32.0 MiB");
  CHECK(format_bytes(std::int64_t{5} << 28) == "1.25 GiB");
  CHECK(format_bytes(std::int64_t{3} << 51) == "6144.00 TiB");
}

TEST_CASE("a plan of 1024 ranks is made in seconds, and tells traffic and times by hosts") {
  Config config =
      config_of(gpt2_model({.layers = 48, .heads = 25, .width = 1600, .context = 1024, .vocabulary = 50257}), 3);
  config.parallel.transport = Transport::nccl;
  BatchShape const batch{.micro = 1, .accumulate = 4, .ranks = 1024};
  PlannedCluster const cluster{
      .ranks_per_host = 8, .rates = ClusterRates{.flops = 4.5e14, .within = 3e11, .between = 4.5e10, .latency = 2e-5}};
  auto const start = std::chrono::steady_clock::now();
  PlanRecord const plan = plan_run(config, batch, cluster);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(plan.transport == "nccl");
  CHECK(plan.ranks_of_first_sums == 8);
  CHECK(plan.predicted.size() == 8); // 8, 16, … 1024
  auto const& gradients = plan.deck_stage().traffic.gradients;
  auto const part = static_cast<double>(gradients.between_hosts_bytes) / static_cast<double>(gradients.bytes);
  CHECK(part == Approx(127.0 / 1023).epsilon(0.01)); // 127 of 1023 shards
  std::string const text = plan_text(plan);
  INFO(text);
  CHECK(contains(text, {"\ntransport   nccl; 128 hosts of 8 ranks, sums within hosts first and then between them\n",
                        "own host other hosts\n", "Predicted time of an update"}));

  config.parallel.transport = Transport::mpi;
  PlanRecord const one_level = plan_run(config, batch, {.ranks_per_host = 8});
  CHECK(one_level.predicted.empty());
  CHECK(one_level.ranks_of_first_sums == std::nullopt);
  auto const& sums = one_level.deck_stage().traffic.gradients;
  CHECK(sums.between_hosts_bytes == sums.bytes / 1023 * 1016);
  CHECK(contains(plan_text(one_level), {"\ntransport   mpi; 128 hosts of 8 ranks, sums in one level\n"}));
}

TEST_CASE("without hosts a plan tells nothing of them") {
  PlanRecord const plan = plan_run(config_of(tiny_model(), 1), {.ranks = 64});
  std::string const text = plan_text(plan);
  INFO(text);
  CHECK(text.find("host other hosts") == std::string::npos);
  CHECK(text.find("level") == std::string::npos);
  CHECK(text.find("Predicted") == std::string::npos);
  CHECK(plan.deck_stage().traffic.gradients.between_hosts_bytes == 0);
}
