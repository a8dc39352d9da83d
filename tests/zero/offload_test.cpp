// Offload against no offload, bit for bit: where the optimizer's state lives changes nothing that is computed.
#include "support/catch.hpp"
#include "support/long_shards.hpp"
#include "support/world.hpp"

#include "model/families.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

OffloadConfig on_host(double ratio) { return {.optimizer = OffloadTarget::host, .ratio = ratio}; }

/// Shards of several tiles, so that a ratio cuts blocks in two.
ModelConfig wide_model() { return gpt2_model({.layers = 2, .heads = 2, .width = 64, .context = 8, .vocabulary = 300}); }

void check_equal(SmallRunResult const& a, SmallRunResult const& b) {
  CHECK(a.hash == b.hash);
  CHECK(a.losses == b.losses);
  CHECK(a.norms == b.norms);
}

template <class T>
void compare_with_device(SmallRunOptions options, Group const& group) {
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    options.stage = stage;
    options.offload = {};
    auto const device = small_run<T>(options, group);
    for (double const ratio : {0.0, 0.5, 1.0}) {
      INFO("width " << gpt2_of(options.model).width << ", stage " << stage << ", accumulate " << options.accumulate
                    << ", ratio " << ratio << ", gradients " << static_cast<int>(options.gradients));
      options.offload = on_host(ratio);
      check_equal(small_run<T>(options, group), device);
    }
  }
}

} // namespace

TEST_CASE_METHOD(World, "offload has the bits of no offload") {
  for (auto const& model : {odd_model(), tiny_model(), wide_model()}) {
    for (std::int64_t const accumulate : {1, 4}) {
      for (auto const gradients : {GradientType::fp32, GradientType::compute}) {
        SmallRunOptions const options{.model = model, .gradients = gradients, .accumulate = accumulate};
        compare_with_device<bf16>(options, world);
        if (accumulate == 1) compare_with_device<fp16>(options, world);
        if (gradients == GradientType::fp32) compare_with_device<float>(options, world);
      }
    }
  }
}

TEST_CASE_METHOD(World, "pieces of several tiles of the host's work have the bits of no offload") { // CASES 11
  SmallRunOptions options{.model = long_shards(world.size()),
                          .stage = 2,
                          .gradients = GradientType::compute,
                          .accumulate = 2,
                          .updates = 2};
  auto const device = small_run<bf16>(options, world);
  for (double const ratio : {0.7, 1.0}) {
    options.offload = on_host(ratio);
    REQUIRE(longest_on_host(options, world) > host_tile);
    check_equal(small_run<bf16>(options, world), device);
  }
}

TEST_CASE_METHOD(World, "with 16-bit gradients all stages have the same bits without accumulation, and pairs with it") {
  for (std::int64_t const accumulate : {1, 4}) {
    std::vector<SmallRunResult> results;
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      results.push_back(small_run<bf16>(
          {.model = wide_model(), .stage = stage, .gradients = GradientType::compute, .accumulate = accumulate},
          world));
    }
    check_equal(results[1], results[0]);
    check_equal(results[3], results[2]);
    if (accumulate == 1) check_equal(results[2], results[0]);
    CHECK(largest_difference(results[2].norms, results[0].norms) < 2e-2);
  }
}

TEST_CASE_METHOD(World, "16-bit gradients are near those in fp32") {
  SmallRunOptions options{.model = wide_model(), .stage = 2};
  auto const full = small_run<bf16>(options, world);
  options.gradients = GradientType::compute;
  auto const rounded = small_run<bf16>(options, world);
  CHECK(rounded.hash != full.hash);
  CHECK(largest_difference(rounded.norms, full.norms) < 1e-3);
  CHECK(largest_difference(rounded.losses, full.losses) < 1e-3);
}

TEST_CASE_METHOD(World, "the link carries 2 bytes down and 2 up a parameter, divided by N, an update") {
  for (auto const& model : {odd_model(), wide_model()}) {
    std::int64_t const psi = parameter_count(architecture_of(model)->layout());
    for (std::int64_t stage = 1; stage <= 3; ++stage) {
      for (std::int64_t const accumulate : {1, 4}) {
        SmallRunOptions const options{.model = model,
                                      .stage = stage,
                                      .offload = on_host(1),
                                      .gradients = GradientType::compute,
                                      .accumulate = accumulate,
                                      .updates = 2};
        LinkTraffic const link = small_run<bf16>(options, world).link;
        std::array<std::int64_t, 2> sums = {link.down_bytes, link.up_bytes};
        world.ranks.sum(std::span<std::int64_t>(sums));
        INFO("stage " << stage << ", accumulate " << accumulate);
        // Shards that take part in every micro-batch's reduction come down each time.
        CHECK(sums[0] == options.updates * 2 * psi * (stage >= 2 ? accumulate : 1));
        CHECK(sums[1] == options.updates * 2 * psi);
      }
    }
  }
}

TEST_CASE("the ratio is that of the shards' bytes, to a tile") {
  ModelConfig model = wide_model();
  gpt2_of(model).layers = 12;
  ModelLayout const layout = architecture_of(model)->layout();
  for (int const ranks : {1, 2, 3, 5}) {
    for (double const ratio : {0.0, 0.1, 0.25, 0.5, 0.9, 1.0}) {
      std::int64_t most_on_host = 0, most_on_device = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        Plan const plan({.zero = {2}, .offload = on_host(ratio)}, rank, ranks);
        std::int64_t host = 0, all = 0;
        std::vector<std::int64_t> next(layout.size());
        for (std::size_t b = 0; b < layout.size(); ++b) next[b] = plan.updated(plan.partition(layout[b].size())).begin;
        for (Piece const& piece : plan.pieces(layout)) {
          REQUIRE(piece.interval.begin == next[piece.block]); // no gap, no overlap
          next[piece.block] = piece.interval.end;
          all += piece.interval.size();
          if (piece.space == Space::host) host += piece.interval.size();
        }
        for (std::size_t b = 0; b < layout.size(); ++b) {
          CHECK(next[b] == plan.updated(plan.partition(layout[b].size())).end);
        }
        INFO("rank " << rank << " of " << ranks << ", ratio " << ratio);
        if (rank == 0) {
          CHECK(std::abs(static_cast<double>(host) - ratio * static_cast<double>(all)) <= Plan::tile);
          most_on_host = host;
          most_on_device = all - host;
        }
        CHECK(host <= most_on_host); // what a plan says of rank 0 holds for all
        CHECK(all - host <= most_on_device);
      }
    }
  }
}

TEST_CASE_METHOD(World, "offload on more ranks than elements has the losses of one rank") { // CASES 2
  Alone self;
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    auto const ranks = small_run<float>({.model = tiny_model(), .stage = stage, .offload = on_host(1)}, world);
    auto const one = small_run<float>({.model = tiny_model(), .accumulate = world.size()}, self);
    CHECK(largest_difference(ranks.losses, one.losses) < 1e-6);
  }
}

TEST_CASE_METHOD(World, "every way to cut a batch gives the same norm with offload too") { // CASES 5
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    std::vector<SmallRunResult> results;
    for (std::int64_t const accumulate : {1, 4, 8}) {
      results.push_back(small_run<float>(
          {.stage = stage, .offload = on_host(1), .micro = 8 / accumulate, .accumulate = accumulate}, world));
    }
    CHECK(largest_difference(results[1].norms, results[0].norms) < 1e-5);
    CHECK(largest_difference(results[2].norms, results[0].norms) < 1e-5);
  }
}

TEST_CASE("offload with stage 0 is refused") {
  CHECK_THROWS_AS(Plan({.zero = {0}, .offload = on_host(1)}, 0, 1), Error);
}
