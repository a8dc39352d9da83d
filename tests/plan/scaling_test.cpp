// The time of an update by numbers made by hand, and a deck's on more and more ranks.
#include "plan/scaling.hpp"

#include "support/catch.hpp"
#include "support/gpt2_model.hpp"
#include "support/temporary_folder.hpp"

#include "core/error.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr ClusterRates rates{.flops = 1e3, .within = 100, .between = 10, .latency = 0.125};

/// Four units, of which each brings so much.
CollectiveTraffic units_of(char const* collective, Received const& unit) {
  return {.collective = collective,
          .calls = 4,
          .bytes = 4 * unit.bytes,
          .between_hosts_bytes = 4 * unit.between_hosts_bytes,
          .messages = 4 * 3,
          .first_block = unit};
}

/// 2 s forward and 4 s backward in two micro-batches. Of four units the parameters take 4 (0.125 + 0.5 + 1) = 6.5 s,
/// the gradients 4 (0.125 + 1 + 2) = 12.5 s.
UpdateWork work_of(UpdateWork::Gathers gathers, std::int64_t reductions) {
  return {.ranks = 4,
          .tokens = 512,
          .forward_flops = 2000,
          .backward_flops = 4000,
          .micro_batches = 2,
          .reductions = reductions,
          .gathers = gathers,
          .traffic = {.parameters = units_of("all_gather", {.bytes = 60, .between_hosts_bytes = 10}),
                      .gradients = units_of("reduce_scatter", {.bytes = 120, .between_hosts_bytes = 20})}};
}

Config small_deck(std::int64_t stage) {
  Config config;
  config.model = gpt2_model({.layers = 2, .heads = 2, .width = 64, .context = 16, .vocabulary = 300});
  config.zero.stage = stage;
  config.parallel.transport = Transport::nccl;
  return config;
}

} // namespace

TEST_CASE("computation and exchange take what their rates say") {
  PredictedUpdate const update = predict_update(work_of(UpdateWork::Gathers::after_update, 1), rates);
  CHECK(update.compute_s == Approx(6.0));
  CHECK(update.within_s == Approx(4 * 0.5 + 4 * 1.0));
  CHECK(update.between_s == Approx(4 * 1.0 + 4 * 2.0));
  CHECK(update.latency_s == Approx(8 * 0.125));
  CHECK(update.update_s() == Approx(6.0 + update.exposed_s));
  CHECK(update.tokens_per_s() == Approx(512 / update.update_s()));
}

TEST_CASE("what is exchanged after an update is hidden by one forward pass, gradients by the passes that reduce them") {
  // First gather 1.625 s and last reduction 3.125 s show. Gathers of 4.875 s are beside 1 s of forward; reductions of
  // 9.375 s beside 2 s of backward each time.
  auto const exposed = [](std::int64_t reductions) {
    return predict_update(work_of(UpdateWork::Gathers::after_update, reductions), rates).exposed_s;
  };
  CHECK(exposed(1) == Approx(1.625 + 3.125 + 3.875 + 7.375));
  CHECK(exposed(2) == Approx(1.625 + 3.125 + 3.875 + 5.375));
}

TEST_CASE("gathers in the passes share these with reductions, which only backward passes hide") {
  UpdateWork work = work_of(UpdateWork::Gathers::in_passes, 2);
  CHECK(predict_update(work, rates).exposed_s == Approx(1.625 + 3.125 + (4.875 + 9.375 - 6.0)));
  work.forward_flops = 20000; // all gathers are behind it
  CHECK(predict_update(work, rates).exposed_s == Approx(1.625 + 3.125 + (9.375 - 4.0)));
  work.backward_flops = 20000;
  CHECK(predict_update(work, rates).exposed_s == Approx(1.625 + 3.125)); // nothing hides the first unit's
}

TEST_CASE("one rank exchanges nothing, whatever a collective takes") {
  UpdateWork work = work_of(UpdateWork::Gathers::in_passes, 2);
  work.traffic = {.parameters = {"all_gather", 4}, .gradients = {"reduce_scatter", 4}};
  CHECK(predict_update(work, rates).update_s() == Approx(6.0));
}

TEST_CASE("a deck is predicted on one host, on hosts doubled, and on all ranks, with as many windows a rank") {
  auto const ranks_of = [](std::int64_t ranks, std::int64_t per_host) {
    std::vector<std::int64_t> all;
    for (auto const& update : predict_scaling(small_deck(1), {.ranks = ranks}, per_host, rates)) {
      all.push_back(update.ranks);
    }
    return all;
  };
  using Ranks = std::vector<std::int64_t>;
  CHECK(ranks_of(64, 8) == Ranks{8, 16, 32, 64});
  CHECK(ranks_of(8, 8) == Ranks{8});
  CHECK(ranks_of(5, 1) == Ranks{1, 2, 4, 5});
  CHECK(ranks_of(100, 24) == Ranks{24, 48, 96, 100});

  double const weights = 2 * 12 * 64 * 64 + 300 * 64;
  double const attention = 2 * 64 * 16; // layers, width, half of the pairs twice
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    auto const all = predict_scaling(small_deck(stage), {.micro = 2, .accumulate = 3, .ranks = 64}, 8, rates);
    REQUIRE(all.size() == 4);
    CHECK(efficiency(all.front(), all) == Approx(1.0));
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(stage, i);
      CHECK(all[i].tokens == all[i].ranks * 2 * 3 * 16);
      CHECK(all[i].compute_s == Approx(6 * (weights + attention) * 2 * 3 * 16 / 1e3));
      CHECK((all[i].between_s == 0) == (i == 0));
      double const slower = all.front().update_s() / all[i].update_s(); // as windows a rank are as many
      CHECK(efficiency(all[i], all) == Approx(slower));
      if (i > 0) CHECK(all[i].between_s > all[i - 1].between_s);
    }
  }
}

TEST_CASE("two levels take less time between hosts than one, by the ranks of a host") {
  Config config = small_deck(1);
  auto const last = [&] { return predict_scaling(config, {.ranks = 1024}, 8, rates).back(); };
  double const two = last().between_s;
  config.parallel.transport = Transport::mpi;
  CHECK(last().between_s == Approx(8 * two).epsilon(0.01));
}

TEST_CASE("recomputation is the backward pass's") {
  Config config = small_deck(1);
  auto const compute = [&] { return predict_scaling(config, {.ranks = 8}, 8, rates).front().compute_s; };
  double const without = compute();
  config.activations.recompute = Recompute::unit;
  CHECK(compute() > without);
  CHECK(compute() < without * 4 / 3);
}

TEST_CASE("times that nobody can tell are refused in words") {
  Config config = small_deck(1);
  config.offload.optimizer = OffloadTarget::host;
  CHECK(contains(message_of<InputError>([&] { predict_scaling(config, {.ranks = 8}, 8, rates); }),
                 {"--rates: ", "offload.optimizer: host (", "; leave --rates away"}));
  config = small_deck(1);
  config.run.reproducibility = Reproducibility::topology;
  CHECK_THROWS_AS(predict_scaling(config, {.ranks = 64}, 24, rates), InputError);
}

TEST_CASE("rates are read in any order, and refused in words where they are none") {
  ClusterRates const read = parse_rates("latency=0,between=4.5e10,flops=4.5e14,within=3e11");
  CHECK(read.flops == 4.5e14);
  CHECK(read.within == 3e11);
  CHECK(read.between == 4.5e10);
  CHECK(read.latency == 0.0);
  auto const refused = [](std::string const& text, std::string const& word) {
    std::string const said = message_of<InputError>([&] { parse_rates(text); });
    INFO(said);
    CHECK(contains(said, {"--rates: ", word, "; write --rates flops=4.5e14,within="}));
  };
  refused("", "'' is no rate (");
  refused("flops=1,within=1,between=1", "latency is missing (");
  refused("flops=1,within=1,between=1,latency=1,", "'' is no rate (");
  refused("flops=1,flop=1", "'flop' is no rate (");
  refused("flops=1,flops=1", "flops is there twice (");
  refused("flops", "flops has no value (");
  refused("flops=450T", "flops is '450T' (");
  refused("within=0", "within is 0 (a rate is above zero)");
  refused("latency=-1", "latency is -1 (");
}
