// run.reproducibility: topology. A run that goes on elsewhere ends as one that was never stopped, on one rank.
#include "support/catch.hpp"
#include "support/faulty_collectives.hpp"
#include "support/training.hpp"

#include "core/signal_listener.hpp"

#include <csignal>
#include <numeric>

using namespace kozero;
using namespace kozero::test;

namespace {

/// The first half of all ranks, the only one where there is no other.
struct Half {
  explicit Half(Ranks& all, Ledger& ledger)
      : ranks(all.split(members(all))), collectives(ranks->make_collectives(ledger)),
        takes_part(all.rank() < std::max(1, all.size() / 2)) {}
  static std::vector<int> members(Ranks const& all) {
    int const half = std::max(1, all.size() / 2);
    bool const first = all.rank() < half;
    std::vector<int> of_mine(static_cast<std::size_t>(first ? half : all.size() - half));
    std::iota(of_mine.begin(), of_mine.end(), first ? 0 : half);
    return of_mine;
  }
  Group group() const { return {*ranks, *collectives}; }

  std::unique_ptr<Ranks> ranks;
  std::unique_ptr<Collectives> collectives;
  bool takes_part;
};

struct Link {
  std::int64_t stage;
  OffloadConfig offload;
};

Config with(Config config, Link const& link) {
  config.zero.stage = link.stage;
  config.offload = link.offload;
  return config;
}

std::int64_t batches_seen(std::optional<std::filesystem::path> const& checkpoint) {
  return checkpoint ? CheckpointReader(*checkpoint).info().counters.batches_seen : 0;
}

/// Goes on with the run until its last rank hears a signal, in the third batch from here. That is given up between two
/// micro-batches, where it is reduced more than once and no update is made beside it.
void run_and_stop(Group const& group, Config const& config, std::string const& run) {
  std::int64_t const moment = 2 * reductions_a_batch(config, group.size());
  FaultyCollectives signalled(group, [&](std::int64_t reduction, auto const&) {
    if (reduction == moment && group.rank() == group.size() - 1) SignalListener::hear(SIGTERM);
  });
  std::optional<std::filesystem::path> from;
  if (std::filesystem::exists(run + "/checkpoints")) from = resolve_checkpoint(run);
  group.ranks.barrier();
  std::int64_t const before = batches_seen(from);
  CHECK(run_trainer(config, run, signalled, from) == RunEnd::stopped_early);
  SignalListener::forget();
  Plan const plan(sharding_of(config), 0, group.size(), batch_shape(config.batch, group.size()).accumulate);
  bool const whole = plan.reductions() == 1;
  if (!plan.delays()) CHECK(batches_seen(resolve_checkpoint(run)) == before + (whole ? 3 : 2));
}

/// On all ranks, then half of them, then one, each link of the chain in its own way.
void check_chain(RunFixture const& fixture, Config const& config, std::array<Link, 3> const& links,
                 std::string const& name) {
  Group const& world = fixture.world;
  Ledger ledger;
  Half const half(world.ranks, ledger);
  Alone self;
  std::string const run = fixture.folder.file(name);
  run_and_stop(world, with(config, links[0]), run);
  world.ranks.barrier();
  if (half.takes_part) run_and_stop(half.group(), with(config, links[1]), run);
  world.ranks.barrier();
  if (world.rank() == 0) {
    Config const last = with(config, links[2]);
    Metrics const chain = trained(last, run, self, resolve_checkpoint(run));
    Metrics const whole = trained(last, fixture.folder.file(name + " on one rank"), self);
    CHECK(chain.lines == whole.lines);
    CHECK(chain.hash() == whole.hash());
  }
  world.ranks.barrier();
}

} // namespace

TEST_CASE_METHOD(RunFixture,
                 "stopped, and resumed on fewer ranks in other ways, a run ends as on one rank") { // CASES 15
  config.run.reproducibility = Reproducibility::topology;
  config.data.validation = "0.1";
  config.batch = {.micro = 1, .accumulate = {}, .global = 8};
  config.evaluate.every = 2;
  config.checkpoint.every = 3;
  OffloadConfig const on_host{.optimizer = OffloadTarget::host, .ratio = 0.5};
  check_chain(*this, config, {Link{3, {}}, Link{1, on_host}, Link{0, {}}}, "fp32");
  config.precision.compute = ComputeType::fp16;
  config.precision.loss_scale.initial = 0x1p24; // overflows at first
  check_chain(*this, config, {Link{0, {}}, Link{2, on_host}, Link{3, {}}}, "fp16");
}

TEST_CASE_METHOD(RunFixture, "so does one whose micro-batches ranks share by threes, each of several windows") {
  config.run.reproducibility = Reproducibility::topology;
  config.data.validation = "0.1";
  config.batch = {.micro = 2, .accumulate = {}, .global = 48};
  config.precision.gradients = GradientType::compute; // of fp32
  OffloadConfig const on_host{.optimizer = OffloadTarget::host, .ratio = 0.5};
  check_chain(*this, config, {Link{1, on_host}, Link{2, on_host}, Link{0, {}}}, "in a row first");
  check_chain(*this, config, {Link{3, {}}, Link{0, {}}, Link{1, {}}}, "in a row later");
}

TEST_CASE_METHOD(RunFixture, "stopped with an update pending, a delayed run ends as on one rank") { // CASES 15
  config.run.reproducibility = Reproducibility::topology;
  config.data.validation = "0.1";
  config.batch = {.micro = 1, .accumulate = {}, .global = 8};
  config.precision.compute = ComputeType::bf16;
  OffloadConfig const half{.optimizer = OffloadTarget::host, .ratio = 0.5, .delayed_update = {2}};
  OffloadConfig const all{.optimizer = OffloadTarget::host, .ratio = 1, .delayed_update = {2}};
  check_chain(*this, config, {Link{1, all}, Link{3, half}, Link{2, all}}, "delayed");
}
