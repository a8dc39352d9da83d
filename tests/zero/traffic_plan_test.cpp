// What is predicted of an update's traffic, beside what the ranks count, rank by rank.
#include "zero/traffic_plan.hpp"

#include "support/catch.hpp"
#include "support/small_run.hpp"
#include "support/world.hpp"

#include "model/families.hpp"

#include <bit>

using namespace kozero;
using namespace kozero::test;

namespace {

/// A model without numbers: `layers` blocks of 1000 elements between an embedding of 100 and a head of 10.
ModelLayout blocks(int layers) {
  auto const block = [](char const* name, std::int64_t size) { return BlockLayout(name, {{"t", {size}}}); };
  ModelLayout layout = {block("embedding", 100)};
  for (int i = 0; i < layers; ++i) layout.push_back(block("h", 1000));
  layout.push_back(block("head", 10));
  return layout;
}

Sharding at_stage(std::int64_t stage) { return {.zero = {stage}}; }

std::vector<UnitUses> uses_of(std::int64_t layers, bool tied) {
  return architecture_of(gpt2_model({.layers = layers, .tied = tied}))->uses();
}

} // namespace

TEST_CASE_METHOD(World, "predicted traffic is what this rank receives, to the byte") {
  auto const check = [&](auto compute, SmallRunOptions options) {
    using T = decltype(compute);
    options.updates = 1;
    SmallRun<T> run(options, world);
    UpdateTraffic const predicted = run.training().planned_traffic();
    auto const measured = run.run();
    CAPTURE(world.rank(), options.stage, options.accumulate, gpt2_of(options.model).tied, gpt2_of(options.model).layers,
            sizeof(T));
    CHECK(predicted.parameters.bytes == measured.parameters.bytes);
    CHECK(predicted.gradients.bytes == measured.gradients.bytes);
    CHECK(predicted.to_host_bytes == measured.link.down_bytes);
    CHECK(predicted.to_device_bytes == measured.link.up_bytes);
    bool on_host = false;
    for (auto const& part : run.engine().state()) on_host |= part.space != Space::device && !part.interval.empty();
    CHECK((predicted.to_host_bytes > 0) == on_host);
  };
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (std::int64_t const accumulate : {1, 4}) {
      for (bool const tied : {true, false}) {
        for (std::int64_t const layers : {1, 4}) {
          ModelConfig model = tiny_model(); // some ranks have nothing of a block
          gpt2_of(model).layers = layers;
          gpt2_of(model).tied = tied;
          check(bf16(), {.model = model, .stage = stage, .accumulate = accumulate});
        }
      }
    }
    check(float(), {.stage = stage, .accumulate = 2});
    for (std::int64_t const accumulate : {1, 4, 6}) {
      if (!std::has_single_bit(static_cast<unsigned>(world.size()))) continue; // is refused
      SmallRunOptions const options{
          .stage = stage, .accumulate = accumulate, .reproducibility = Reproducibility::topology};
      check(float(), options);
      check(bf16(), options);
    }
    check(bf16(), {.stage = stage, .gradients = GradientType::compute, .accumulate = 2});
    for (double const ratio : {0.5, 1.0}) {
      for (GradientType const gradients : {GradientType::fp32, GradientType::compute}) {
        if (stage == 0) continue; // is refused
        OffloadConfig const offload{.optimizer = OffloadTarget::host, .ratio = ratio};
        for (std::int64_t const accumulate : {1, 4}) {
          check(bf16(), {.stage = stage, .offload = offload, .gradients = gradients, .accumulate = accumulate});
        }
        if (gradients == GradientType::compute || !std::has_single_bit(static_cast<unsigned>(world.size()))) continue;
        check(bf16(),
              {.stage = stage, .offload = offload, .accumulate = 6, .reproducibility = Reproducibility::topology});
      }
    }
  }
}

TEST_CASE("predicted calls are those of the picture in doc/architecture.md") {
  // Two layers, own head, one micro-batch: embedding, layer 1 and head come once, layer 0 twice.
  Plan const plan(at_stage(3), 0, 64);
  auto const traffic = plan_traffic(plan, blocks(2), uses_of(2, false), {});
  CHECK(traffic.parameters.collective == "all_gather");
  CHECK(traffic.parameters.calls == 5);
  CHECK(traffic.gradients.collective == "reduce_scatter");
  CHECK(traffic.gradients.calls == 4);
  // Layer 0 is still there when a second micro-batch begins.
  auto const again = plan_traffic(Plan(at_stage(3), 0, 64, 2), blocks(2), uses_of(2, false), {});
  CHECK(again.parameters.calls == 9);
  CHECK(again.gradients.calls == 8);

  auto const whole = plan_traffic(Plan(at_stage(0), 0, 64, 2), blocks(2), uses_of(2, false), {});
  CHECK(whole.parameters == CollectiveTraffic{"none", 0, 0});
  CHECK(whole.gradients.collective == "all_reduce");
  CHECK(whole.gradients.calls == 4);
}

TEST_CASE("on 1024 ranks all together receive what the formula says, at every stage, in one level and in two") {
  constexpr int ranks = 1024;
  constexpr int near = 8;
  constexpr int hosts = ranks / near;
  constexpr std::int64_t micro_batches = 3;
  auto const architecture = architecture_of(
      gpt2_model({.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257, .tied = false}));
  ModelLayout const layout = architecture->layout();
  std::int64_t const psi = parameter_count(layout);
  // Gathered at stage 3: all in both passes, but embedding, last layer and head once; the first layer is still there
  // when the next micro-batch begins.
  std::int64_t const once = layout[0].size() + layout[layout.size() - 2].size() + layout.back().size();
  std::int64_t const in_passes = micro_batches * (2 * psi - once) - (micro_batches - 1) * layout[1].size();
  std::int64_t const gathers = micro_batches * (2 * (12 + 2) - 3) - (micro_batches - 1);
  for (bool const two_levels : {false, true}) {
    ExchangeWay way{.hosts = RankHosts::runs_of(near, ranks)};
    if (two_levels) way.ranks_of_host = near;
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      CollectiveTraffic parameters, gradients; // all ranks together
      auto const add = [](CollectiveTraffic& all, CollectiveTraffic const& one) {
        all.calls += one.calls;
        all.bytes += one.bytes;
        all.between_hosts_bytes += one.between_hosts_bytes;
        all.messages += one.messages;
        all.between_hosts_messages += one.between_hosts_messages;
      };
      for (int rank = 0; rank < ranks; ++rank) {
        UpdateShape const update{.parameter_bytes = 2, .gradient_bytes = 2, .way = way};
        auto const traffic =
            plan_traffic(Plan(at_stage(stage), rank, ranks, micro_batches), layout, architecture->uses(), update);
        add(parameters, traffic.parameters);
        add(gradients, traffic.gradients);
      }
      CAPTURE(stage, two_levels);
      std::int64_t const gathered = stage == 0 ? 0 : stage == 3 ? in_passes : psi;
      CHECK(parameters.bytes == 2 * gathered * (ranks - 1));
      // Of what all lack, hosts lack (M-1)/M; in two levels it comes to a host once.
      std::int64_t const far = 2 * gathered * (ranks - near) / (two_levels ? near : 1);
      CHECK(parameters.between_hosts_bytes <= far);
      CHECK(parameters.between_hosts_bytes >= far - (two_levels ? gathers * ranks : 0)); // shares rounded down
      std::int64_t const reductions = stage >= 2 ? micro_batches : 1;
      std::int64_t const again = stage == 0 ? 1 : 0; // an all_gather of the sums
      std::int64_t const near_sums = 2 * psi * (two_levels ? (near - 1) * hosts : near - 1);
      std::int64_t const far_sums = two_levels ? 4 * psi * (hosts - 1) : 2 * psi * (ranks - near);
      CHECK(gradients.bytes == reductions * (near_sums + far_sums + again * 2 * psi * (ranks - 1)));
      if (again == 0) CHECK(gradients.between_hosts_bytes == reductions * far_sums);

      std::int64_t const blocks = 12 + 2;
      CHECK(parameters.calls == ranks * (stage == 0 ? 0 : stage == 3 ? gathers : blocks));
      CHECK(gradients.calls == ranks * reductions * blocks);
      std::int64_t const messages = two_levels ? (near - 1) * hosts + (hosts - 1) : ranks - 1;
      CHECK(parameters.messages == parameters.calls * messages);
      CHECK(gradients.messages == gradients.calls * messages * (1 + again));
      std::int64_t const far_messages = two_levels ? hosts - 1 : ranks - near;
      CHECK(parameters.between_hosts_messages == parameters.calls * far_messages);
      CHECK(gradients.between_hosts_messages == gradients.calls * far_messages * (1 + again));
    }
  }
}

TEST_CASE("of a rank's traffic on one host nothing comes from another, and what comes from others is in its bytes") {
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    Plan const plan(at_stage(stage), 1, 8, 2);
    auto const traffic = [&](std::optional<ExchangeWay> const& way) {
      return plan_traffic(plan, blocks(2), uses_of(2, true), {.way = way});
    };
    ExchangeWay const apart{.hosts = RankHosts({0, 1, 0, 1, 2, 0, 1, 2})}; // rank 1 has two others on its host
    CHECK(traffic(std::nullopt) == traffic(ExchangeWay{.hosts = RankHosts(8)}));
    CHECK(traffic(std::nullopt).gradients.between_hosts_bytes == 0);
    CHECK(traffic(apart).gradients.bytes == traffic(std::nullopt).gradients.bytes);
    CHECK(traffic(apart).parameters.bytes == traffic(std::nullopt).parameters.bytes);
    CHECK(traffic(apart).gradients.between_hosts_messages == traffic(apart).gradients.messages / 7 * 5);
    if (stage > 0) CHECK(7 * traffic(apart).gradients.between_hosts_bytes == 5 * traffic(apart).gradients.bytes);
  }
}

TEST_CASE("a tree of sums costs traffic only where whole blocks are many micro-batches that are no power of two") {
  auto const calls = [](std::int64_t stage, int ranks, std::int64_t micro_batches, SumOrder sums) {
    Plan const plan({.zero = {stage}, .sums = sums}, 0, ranks, micro_batches);
    return plan_traffic(plan, blocks(2), uses_of(2, false), {}).gradients.calls / 4; // of a block
  };
  for (std::int64_t const micro_batches : {1, 2, 6, 8, 12}) {
    for (std::int64_t const stage : {2, 3}) CHECK(calls(stage, 4, micro_batches, SumOrder::tree) == micro_batches);
    for (std::int64_t const stage : {0, 1}) {
      bool const odd = micro_batches % 3 == 0;
      CHECK(calls(stage, 4, micro_batches, SumOrder::tree) == (odd ? 3 : 1));
      CHECK(calls(stage, 4, micro_batches, SumOrder::ascending) == 1);
      CHECK(calls(stage, 1, micro_batches, SumOrder::tree) == 1);
    }
  }
}

TEST_CASE("16-bit gradients are half the traffic of fp32") {
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    Plan const plan(at_stage(stage), 1, 3, 4);
    auto const traffic = [&](std::int64_t bytes) {
      return plan_traffic(plan, blocks(3), uses_of(3, true), {.gradient_bytes = bytes});
    };
    CHECK(traffic(4).gradients.bytes > 0);
    CHECK(2 * traffic(2).gradients.bytes == traffic(4).gradients.bytes);
    CHECK(traffic(2).parameters == traffic(4).parameters);
  }
}

TEST_CASE("the host link carries gradients down where they are reduced, and 16-bit parameters up once") {
  UpdateShape const update{.parameter_bytes = 2, .gradient_bytes = 4, .host_elements = 1000};
  auto const at = [&](std::int64_t stage) {
    return plan_traffic(Plan(at_stage(stage), 0, 2, 4), blocks(1), uses_of(1, true), update);
  };
  CHECK(at(1).to_host_bytes == 4 * 1000); // reduced once an update
  CHECK(at(2).to_host_bytes == 4 * 4 * 1000);
  CHECK(at(3).to_host_bytes == 4 * 4 * 1000);
  for (std::int64_t stage = 1; stage <= 3; ++stage) CHECK(at(stage).to_device_bytes == 2 * 1000);
}
