// What a run does with updates that fail, and what it writes.
#include "support/catch.hpp"
#include "support/faulty_collectives.hpp"
#include "support/training.hpp"

#include "comm/survey.hpp"
#include "optim/schedule.hpp"
#include "plan/start_table.hpp"

#include <cmath>
#include <limits>
#include <set>

using namespace kozero;
using namespace kozero::test;

namespace {

/// On the last rank, an Inf in h.0 in these batches, counted from 0.
FaultyCollectives with_inf(Group const& world, Config const& config, std::vector<std::int64_t> batches) {
  std::int64_t const each = reductions_a_batch(config, world.size());
  return {world, [&world, each, batches](std::int64_t reduction, auto const& gradients) {
            bool const strikes = reduction % each == 1 && std::ranges::count(batches, reduction / each) > 0;
            if (strikes && world.rank() == world.size() - 1) gradients.set(7, std::numeric_limits<float>::infinity());
          }};
}

/// fp16 with offload, three overflows away from its end.
Config near_the_smallest_scale(Config config) {
  config.precision = {.compute = ComputeType::fp16, .loss_scale = {.initial = 4, .hysteresis = 1}};
  config.zero.stage = 2;
  config.offload.optimizer = OffloadTarget::host;
  return config;
}

} // namespace

TEST_CASE_METHOD(RunFixture, "a skipped update moves neither the learning rate nor Adam's t") { // CASES 8
  // One window: every batch is the same, so what the k-th applied update does depends on k alone.
  config.data.train = folder.write("one window", text_of(bytes_of_windows(1, odd_model().context)));
  config.run.updates = 5;
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    INFO("stage " << stage);
    config.zero.stage = stage;
    Metrics const clean = trained(config, folder.file("clean"), world);
    FaultyCollectives faulty = with_inf(world, config, {1, 2});
    Metrics const skipping = trained(config, folder.file("skipping"), faulty);

    REQUIRE(clean.updates.size() == 5);
    REQUIRE(skipping.updates.size() == 7);
    std::vector<Json> applied;
    for (std::size_t batch = 0; batch < 7; ++batch) {
      Json update = skipping.updates[batch];
      bool const skips = batch == 1 || batch == 2;
      CHECK(update.at("batch") == batch + 1);
      CHECK(update.at("updates_skipped") == std::min<std::size_t>(batch, 2));
      CHECK(update.at("norm").is_null() == skips);
      CHECK(update.at("lr") == clean.updates[skips ? 1 : batch < 1 ? batch : batch - 2].at("lr"));
      if (skips) continue;
      update.erase("batch");
      update.erase("updates_skipped");
      applied.push_back(update);
    }
    for (std::size_t k = 0; k < 5; ++k) {
      Json wanted = clean.updates[k];
      wanted.erase("batch");
      wanted.erase("updates_skipped");
      CHECK(applied[k] == wanted);
    }
    CHECK(skipping.hash() == clean.hash());
    CHECK(skipping.ends.back().at("updates_skipped") == 2);
  }
}

TEST_CASE_METHOD(RunFixture, "a skipped update moves nothing in a delayed and offloaded run either") { // CASES 8
  config.data.train = folder.write("one window", text_of(bytes_of_windows(1, odd_model().context)));
  config.run.updates = 6;
  config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {3}};
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    INFO("stage " << stage);
    config.zero.stage = stage;
    FaultyCollectives faulty = with_inf(world, config, {1, 4, 5});
    Metrics const run = trained(config, folder.file("run"), faulty);
    // One batch's gradient an update, whatever is skipped; the rate is the schedule's for that update.
    REQUIRE(run.updates.size() == 9);
    std::int64_t used = 0;
    for (std::size_t batch = 0; batch < run.updates.size(); ++batch) {
      auto const& line = run.updates[batch];
      bool const skips = batch == 1 || batch == 4 || batch == 5;
      CHECK(line.at("norm").is_null() == skips);
      CHECK(line.at("lr") == learning_rate(config.optimizer, config.schedule, config.run.updates, used));
      used += skips ? 0 : 1;
      CHECK(line.contains("pending") == (!skips && used >= 3));
      CHECK(line.at("updates_applied") == used - (line.contains("pending") ? 1 : 0));
    }
    CHECK(run.ends.back().at("updates_applied") == 6);
    CHECK(run.ends.back().at("updates_skipped") == 3);
  }
}

TEST_CASE_METHOD(RunFixture, "fp16 skips what overflows, halves its scale, and trains on") {
  config.precision = {.compute = ComputeType::fp16,
                      .gradients = GradientType::compute,
                      .loss_scale = {.initial = 1024, .window = 3, .hysteresis = 2}};
  config.zero.stage = 2;
  for (auto const optimizer : {OffloadTarget::none, OffloadTarget::host}) {
    config.offload.optimizer = optimizer;
    FaultyCollectives faulty = with_inf(world, config, {1, 2, 7});
    Metrics const run = trained(config, folder.file("run"), faulty);
    // Tolerated, halved; doubled after 3 clean ones in a row; tolerated again, as doubling forgives.
    CHECK(run.numbers("loss_scale") ==
          std::vector<double>{1024, 1024, 1024, 512, 512, 512, 1024, 1024, 1024, 1024, 1024});
    CHECK(run.ends.back().at("updates_applied") == 8);
    CHECK(run.ends.back().at("updates_skipped") == 3);
  }
}

TEST_CASE_METHOD(
    RunFixture,
    "fp16 at its smallest scale gives up once, names the tensor, and leaves a whole checkpoint") { // CASES 12
  config = near_the_smallest_scale(config);
  config.checkpoint.every = 1;
  config.optimizer.max_skips = 2; // overflows are the scale's business
  for (bool const delayed : {false, true}) {
    config.offload.delayed_update.start = delayed ? std::optional<std::int64_t>(1) : std::nullopt;
    std::string const run = folder.file(delayed ? "delayed" : "run");
    Config diverging = config;
    diverging.optimizer.lr = 1e2; // the first update takes activations out of fp16, but not out of fp32
    diverging.optimizer.clip.reset();
    diverging.schedule.warmup = 0;
    diverging.run.updates = 40;
    std::string const message = message_of<SharedError>([&] { run_trainer(diverging, run, world); });
    INFO(message);
    CHECK(contains(message, {"overflows fp16 at the smallest loss scale, 1", "first in ", "; lower optimizer.lr"}));
    world.ranks.barrier();
    Metrics const metrics(run);
    CHECK(metrics.ends.empty());
    CHECK(metrics.numbers("loss_scale").back() == 1);

    // What the run left can be read; to train on from weights of that size would be no use.
    Config ends_there = config;
    ends_there.run.updates = CheckpointReader(resolve_checkpoint(run)).info().counters.updates_applied;
    CHECK(ends_there.run.updates >= 1);
    CHECK(run_trainer(ends_there, run, world, resolve_checkpoint(run)) == RunEnd::done);
  }
}

TEST_CASE_METHOD(RunFixture,
                 "after overflows down to the smallest scale the last good checkpoint goes on") { // CASES 12
  config = near_the_smallest_scale(config);
  config.checkpoint.every = 2;
  for (bool const delayed : {false, true}) {
    config.offload.delayed_update.start = delayed ? std::optional<std::int64_t>(2) : std::nullopt;
    Metrics const clean = trained(config, folder.file("clean"), world);
    FaultyCollectives faulty = with_inf(world, config, {5, 6, 7, 8, 9, 10});
    std::string const run = folder.file(delayed ? "delayed" : "run");
    std::string const message = message_of<SharedError>([&] { run_trainer(config, run, faulty); });
    CHECK(contains(message, {"smallest loss scale, 1", "first in h.0.", "batch 8"})); // 4, 2, 1
    world.ranks.barrier();
    CHECK(trained(config, run, world, resolve_checkpoint(run)).hash() == clean.hash());
  }
}

TEST_CASE_METHOD(RunFixture, "after a skipped update the data goes on") {
  config.optimizer.lr = 1e-30; // the parameters stay, and losses tell the batches from each other
  config.run.updates = 6;
  std::vector<double> const clean = trained(config, folder.file("clean"), world).losses();
  REQUIRE(std::set<double>(clean.begin(), clean.end()).size() == 6);
  config.run.updates = 4;
  FaultyCollectives faulty = with_inf(world, config, {1, 2});
  CHECK(trained(config, folder.file("skipping"), faulty).losses() == clean);
}

TEST_CASE_METHOD(RunFixture,
                 "a run gives up after max_skips in a row, names the tensor, and keeps its last good checkpoint") {
  config.optimizer.max_skips = 3;
  config.checkpoint = {.every = 1, .keep = 2};
  config.zero.stage = 2;
  // One alone does not count: they must be in a row.
  FaultyCollectives faulty = with_inf(world, config, {0, 3, 4, 5});
  std::string const message = message_of<SharedError>([&] { run_trainer(config, folder.file("run"), faulty); });
  CHECK(contains(message, {"3 updates were skipped in a row", "h.0.", "batch 6", "; ", "resume from the last"}));

  world.ranks.barrier();
  Metrics const metrics(folder.file("run"));
  CHECK(metrics.updates.size() == 6);
  CHECK(metrics.ends.empty());
  CheckpointReader const checkpoint(resolve_checkpoint(folder.file("run")));
  CHECK(checkpoint.info().counters.batches_seen == 3);
  CHECK(checkpoint.info().counters.updates_applied == 2);
  CHECK(checkpoint.info().counters.updates_skipped == 1);
}

TEST_CASE_METHOD(RunFixture, "a run that has saved nothing is not told to resume") { // CASES 43
  config.optimizer.max_skips = 2;
  FaultyCollectives faulty = with_inf(world, config, {0, 1});
  std::string const message = message_of<SharedError>([&] { run_trainer(config, folder.file("run"), faulty); });
  CHECK(contains(message, {"2 updates were skipped in a row", "then start anew (nothing has been saved yet)"}));
}

TEST_CASE_METHOD(RunFixture, "metrics hold one object an update, evaluations when they are due, and the end") {
  config.data.validation = "0.1";
  config.run.updates = 5;
  config.evaluate.every = 2;
  Metrics const metrics = trained(config, folder.file("run"), world);

  REQUIRE(metrics.updates.size() == 5);
  for (auto const& update : metrics.updates) {
    for (char const* key : {"batch", "updates_applied", "updates_skipped", "loss", "norm", "clip", "lr"}) {
      CHECK(update.at(key).is_number());
    }
  }
  REQUIRE(metrics.evaluations.size() == 3); // after 2, 4 and, for it is the end, 5
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(metrics.evaluations[i].at("updates_applied") == std::min<std::size_t>(2 * i + 2, 5));
    // Better than a guess among 257 tokens, worse than the 16 letters allow where a word ends at random.
    double const loss = metrics.evaluations[i].at("val_loss");
    CHECK(loss < std::log(257.0) + 0.1);
    CHECK(loss > 2.0);
  }
  REQUIRE(metrics.ends.size() == 1);
  Json const& end = metrics.lines.back();
  CHECK(end.at("event") == "end");
  CHECK(end.at("reason") == "done");
  CHECK(end.at("val_loss") == metrics.evaluations.back().at("val_loss"));
  CHECK(end.at("loss") == metrics.updates.back().at("loss"));
  CHECK(metrics.hash().size() == 32);
  CHECK(metrics.hash() == CheckpointReader(resolve_checkpoint(folder.file("run"))).info().state_hash);
}

TEST_CASE_METHOD(
    RunFixture,
    "145 windows in batches of 16 a rank: all ranks do all updates, and each sees the right windows") { // CASES 20
  config.data.train = folder.write("145 windows", text_of(bytes_of_windows(145, odd_model().context)));
  config.run.updates = 7; // the fourth batch of 3 ranks goes on into the second epoch
  config.batch = {.micro = 16, .accumulate = 1, .global = {}};
  Corpus const corpus = open_corpus(config.data, config.model.vocabulary, config.model.context);
  REQUIRE(corpus.train.windows == 145);

  BatchShape const batch = batch_shape(config.batch, world.size());
  Surroundings const here{survey(world.ranks), world.ranks.description(), "carrier pigeons", {}};
  StartTable const table = start_table(config, corpus, batch, here);
  auto const exchange = std::ranges::find(table.rows, "exchange", &std::pair<std::string, std::string>::first);
  CHECK((exchange != table.rows.end()) == (world.size() > 1));
  auto const row = std::ranges::find(table.rows, "updates", &std::pair<std::string, std::string>::first);
  REQUIRE(row != table.rows.end());
  CHECK(row->second == fmt::format("7, {:.1f} an epoch", 145.0 / (16.0 * world.size())));
  auto const attention = std::ranges::find(table.rows, "attention", &std::pair<std::string, std::string>::first);
  REQUIRE(attention != table.rows.end());
  CHECK(attention->second.starts_with("tile kernel ("));

  Metrics const ranks = trained(config, folder.file("ranks"), world);
  CHECK(ranks.ends.back().at("batches_seen") == 7);
  if (world.rank() == 0) {
    Alone self;
    config.batch = {.micro = 16, .accumulate = world.size(), .global = {}};
    Metrics const one = trained(config, folder.file("one"), self);
    CHECK(largest_difference(ranks.losses(), one.losses()) < 1e-5);
  }
}

TEST_CASE_METHOD(RunFixture,
                 "a save that fails does not end a run, unless it is the last or the deck says so") { // CASES 37
  config.checkpoint = {.every = 2, .keep = 9};
  config.zero.stage = 2;
  Metrics const clean = trained(config, folder.file("clean"), world);
  for (int const update : {4, 8}) {
    // A file stands where the save of this update would make its folder.
    std::string const run = folder.file(fmt::format("{}", update));
    std::string const in_the_way = fmt::format("{}/checkpoints/step-{:08}.partial", run, update);
    auto const block = [&] {
      if (world.rank() == 0) {
        std::filesystem::create_directories(run + "/checkpoints");
        std::ofstream(in_the_way) << "dear";
      }
      world.ranks.barrier();
    };
    block();
    auto const message = message_of<SharedError>([&] { run_trainer(config, run, world); });
    world.ranks.barrier();
    CHECK(message.empty() == (update == 4));
    std::vector<int> saved = {2, 4, 6, 8};
    std::erase(saved, update);
    for (int const step : {2, 4, 6, 8}) {
      bool const there = std::filesystem::exists(fmt::format("{}/checkpoints/step-{:08}", run, step));
      CHECK(there == (std::ranges::count(saved, step) > 0));
    }
    if (update == 4) CHECK(Metrics(run).hash() == clean.hash());
    if (update == 8)
      CHECK(contains(message, {"update 8 is not saved: ", world.size() > 1 ? "rank 0 on host " : "", in_the_way}));
  }
  config.checkpoint.on_error = SaveFailure::stop;
  CHECK(contains(message_of<SharedError>([&] { run_trainer(config, folder.file("4"), world); }),
                 {"update 4 is not saved"}));
}

TEST_CASE_METHOD(RunFixture, "a run may save by the clock of its first rank") {
  config.checkpoint = {.every = 0, .keep = 99};
  config.run.updates = 5;
  config.checkpoint.every.seconds = world.rank() == 0 ? 1e-6 : 1e6; // their clocks differ
  Metrics const metrics = trained(config, folder.file("run"), world);
  for (int step = 1; step <= 5; ++step) {
    CHECK(std::filesystem::exists(fmt::format("{}/checkpoints/step-{:08}", folder.file("run"), step)));
  }
  config.checkpoint.every.seconds = 1e6;
  CHECK(trained(config, folder.file("rare"), world).hash() == metrics.hash());
  CHECK(count_checkpoints(folder.file("rare")) == 1);
}

TEST_CASE_METHOD(RunFixture, "with keep_best a run evaluates what it saves, and the best checkpoint stays") {
  config.data.validation = "0.1";
  config.checkpoint = {.every = 2, .keep = 1, .keep_best = 1};
  config.optimizer.lr = 0.5; // far too much: it gets worse
  Metrics const metrics = trained(config, folder.file("run"), world);
  REQUIRE(metrics.evaluations.size() == 4);
  auto const loss = [](Json const& evaluation) { return evaluation.at("val_loss").get<double>(); };
  auto const best = std::ranges::min_element(metrics.evaluations, {}, loss);
  std::int64_t const step = best->at("updates_applied");
  auto const at = [&](std::int64_t update) { return checkpoint_path(folder.file("run"), update); };
  REQUIRE(std::filesystem::exists(at(step)));
  CHECK(CheckpointReader(at(step)).info().held_out_loss == loss(*best));
  CHECK(CheckpointReader(at(8)).info().held_out_loss == loss(metrics.evaluations.back()));
  CHECK(count_checkpoints(folder.file("run")) == (step == 8 ? 1 : 2));
}
