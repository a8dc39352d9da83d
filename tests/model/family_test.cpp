// A family of models that the program was not built with, from its deck to its checkpoints.
#include "model/lookup_family.hpp"
#include "support/catch.hpp"
#include "support/training.hpp"

#include "config/compare.hpp"
#include "infer/generate.hpp"
#include "io/deck.hpp"
#include "plan/rank_plan.hpp"
#include "plan/run_plan.hpp"
#include "verify/selftest.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

std::string message_of(std::string const& deck, std::vector<std::string> const& overrides = {}) {
  try {
    read_deck(deck, "deck.yaml", overrides);
  } catch (InputError const& error) {
    return error.what();
  }
  return "none";
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

Config read(std::string const& deck, std::vector<std::string> const& overrides = {}) {
  register_lookup_family();
  return read_deck(deck, "deck.yaml", overrides).config;
}

/// Chosen by a deck: blocks of 13·(257 + 33) and of 26 elements.
Config lookup_config(std::string const& text_file) {
  return read("model: {family: lookup, channels: 13, vocabulary: 257, context: 33}\n"
              "batch: {micro: 2}\n"
              "optimizer: {lr: 3e-3}\n"
              "schedule: {warmup: 3}\n"
              "precision: {compute: fp32}\n"
              "run: {updates: 8}\n"
              "data: {validation: 0, format: text, train: " +
              text_file + "}\n");
}

/// `work(config, what)` for all that is trained with.
template <class Work>
void for_each_precision(Config config, Work const& work) {
  work(config, "fp32");
  config.precision.compute = ComputeType::bf16;
  work(config, "bf16");
  config.precision = {.compute = ComputeType::fp16, .gradients = GradientType::compute};
  config.precision.loss_scale.initial = 4096; // 16-bit sums over ranks and micro-batches do not overflow at first
  work(config, "fp16");
}

void check_same(Metrics const& a, Metrics const& b) {
  CHECK(a.hash() == b.hash());
  CHECK(a.losses() == b.losses());
}

} // namespace

TEST_CASE("a deck chooses the family, and then its keys are the legal ones") {
  Config const config = read("model: {channels: 7, context: 5, family: lookup, deviation: 0.5}\ndata: {train: x}");
  CHECK(config.model.family == "lookup");
  CHECK(config.model.context == 5);
  CHECK(config.model.own.as<LookupConfig>() == LookupConfig{7, 0.5});
  CHECK(read("model: {channels: 7}\ndata: {train: x}", {"model.family=lookup"}).model.own.as<LookupConfig>() ==
        LookupConfig{.channels = 7});
  CHECK(read("data: {train: x}", {"model={family: lookup}", "model.channels=3"}).model.own.as<LookupConfig>() ==
        LookupConfig{.channels = 3});
  CHECK(read("model: {family: lookup}\ndata: {train: x}", {"model.family=gpt2", "model.layers=2"}).model.family ==
        "gpt2");
  Config const small = read("model: {family: lookup, size: lookup-small, context: 8}\ndata: {train: x}");
  CHECK(small.model.own.as<LookupConfig>().channels == 5);
  CHECK(small.model.context == 8);
  CHECK(read("data: {train: x}").model.family == "gpt2");
  // What is printed reads back, and the reference has it.
  CHECK(read(print_deck(config, {}, "printed")) == config);
  CHECK(contains(deck_reference(), "### family: lookup"));
  CHECK(contains(deck_reference(), "| `channels` | of a token | a whole number from 2 to 4096 | `13` | forbidden |"));
}

TEST_CASE("no two families have one name") {
  register_lookup_family();
  std::size_t const families = model_families().size();
  CHECK_THROWS_AS(register_family(std::make_shared<lookup::LookupFamily>()), Error);
  CHECK(model_families().size() == families);
}

TEST_CASE("another family's key, a word that is none, and a value that the family refuses have their place") {
  register_lookup_family();
  std::string const deck = "data: {train: x}\nmodel:\n  family: lookup\n  ";
  CHECK(contains(message_of(deck + "layers: 2"), "deck.yaml:4:3: unknown key 'layers'"));
  CHECK(contains(message_of(deck + "chanels: 2"), "did you mean 'channels'?"));
  CHECK(contains(message_of(deck + "channels: x"), "deck.yaml:4:13: model.channels: 'x'"));
  CHECK(contains(message_of(deck + "channels: 1"), "deck.yaml:4:13: model.channels: 1 is out of range"));
  CHECK(contains(message_of(deck + "channels: 300"), "deck.yaml:4:13: model.channels: is above model.vocabulary"));
  CHECK(contains(message_of(deck + "size: gpt2-124m"), "write one of none, lookup-small"));
  CHECK(contains(message_of(deck + "channels: 4", {"model.family=gpt2"}), "deck.yaml:4:3: unknown key 'channels'"));
  CHECK(contains(message_of("data: {train: x}\nmodel: {family: lokup}"), "deck.yaml:2:17: model.family: 'lokup'"));
  CHECK(contains(message_of("data: {train: x}\nmodel: {family: lokup}"), "gpt2, lookup"));
  CHECK(contains(message_of("data: {train: x}", {"model.family=[]"}), "command line: model.family: "));
}

TEST_CASE("a run of another family is not resumed") {
  register_lookup_family();
  Config before, now;
  now.model = ModelConfig("lookup");
  auto const differences = compare_decks(before, now);
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].key == "model.family");
  CHECK(differences[0].severity == Severity::forbidden);
}

TEST_CASE_METHOD(
    World,
    "the family trains, and all stages and offload leave the same bits; a delay leaves others, and the same ones") {
  SharedFolder const folder(world.ranks);
  Config const base = lookup_config(folder.write("text", text_of(3000)));
  for_each_precision(base, [&](Config config, char const* precision) {
    Metrics const plain = trained(config, folder.file("plain"), world);
    CHECK(plain.losses().back() < plain.losses().front() - 0.01);
    std::optional<Metrics> delayed;
    for (std::int64_t stage = 0; stage <= 3; ++stage) {
      INFO(precision << ", stage " << stage);
      config.zero.stage = stage;
      config.offload = {};
      check_same(trained(config, folder.file("stage"), world), plain);
      if (stage == 0) continue;
      for (double const ratio : {0.5, 1.0}) {
        config.offload = {.optimizer = OffloadTarget::host, .ratio = ratio};
        check_same(trained(config, folder.file("offload"), world), plain);
      }
      config.offload.delayed_update.start = 3;
      Metrics const late = trained(config, folder.file("delayed"), world);
      CHECK(late.hash() != plain.hash());
      if (delayed) check_same(late, *delayed);
      delayed = late;
    }
  });
}

TEST_CASE_METHOD(World, "ranks share a batch of the family's as one rank would work through it") {
  Alone self;
  Config const config = lookup_config("none");
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    auto const ranks = small_run<float>({.model = config.model, .stage = stage}, world);
    auto const one = small_run<float>({.model = config.model, .accumulate = world.size()}, self);
    CHECK(largest_difference(ranks.losses, one.losses) < 1e-6);
    CHECK(largest_difference(ranks.norms, one.norms) < 1e-5);
  }
}

TEST_CASE_METHOD(World, "a plan of the family is what its training holds, to the byte, and says what it is") {
  SharedFolder const folder(world.ranks);
  Config config = lookup_config(folder.write("text", text_of(3000)));
  config.run.updates = 3;
  auto const told = [](std::vector<MemoryRow> const& rows) {
    std::string text;
    for (auto const& row : rows)
      text += fmt::format("{} {} {}\n", name_of(row.space), name_of(row.category), row.bytes);
    return text;
  };
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (bool const offload : {false, true}) {
      if (offload && stage == 0) continue;
      config.zero.stage = stage;
      config.offload = offload ? OffloadConfig{.optimizer = OffloadTarget::host, .ratio = 0.5} : OffloadConfig{};
      BatchShape const batch = batch_shape(config.batch, world.size());
      World held;
      RunInput const input{.config = config,
                           .resolved_deck = "",
                           .corpus = open_corpus(config.data, config.model.vocabulary, config.model.context),
                           .batch = batch,
                           .folder = folder.file("run"),
                           .overwrite = true};
      train(input, held.world, held.ledger);
      CHECK(told(plan_rank(config, batch, world.rank()).memory) == told(held.ledger.peak_rows()));
      PlanRecord const plan = plan_run(config, batch);
      CHECK(plan.parameters == 13 * (257 + 33) + 26);
      CHECK(plan.model == "lookup of 13 channels: 3796 parameters (3796)");
    }
  }
}

TEST_CASE_METHOD(World, "the self-test passes on the family") {
  SharedFolder const folder(world.ranks);
  Config config = lookup_config(folder.write("text", text_of(3000)));
  config.batch.accumulate = 2;
  for_each_precision(config, [&](Config const& checked, char const* precision) {
    auto const corpus = open_corpus(checked.data, checked.model.vocabulary, checked.model.context);
    auto const report = selftest({checked, corpus, batch_shape(checked.batch, world.size()), 4}, world, ledger);
    INFO(precision << '\n' << report.text);
    CHECK(report.passed);
  });
}

TEST_CASE_METHOD(World, "a stopped run of the family goes on to the same bits, and its checkpoint generates") {
  SharedFolder const folder(world.ranks);
  Config config = lookup_config(folder.write("text", text_of(3000)));
  config.checkpoint = {.every = 3, .keep = 3};
  config.zero.stage = 3;
  std::string const run = folder.file("run");
  Metrics const whole = trained(config, run, world);
  std::filesystem::path const step_3 = run + "/checkpoints/step-00000003";
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    config.zero.stage = stage;
    CHECK(trained(config, folder.file("resumed"), world, step_3).hash() == whole.hash());
  }
  if (world.rank() == 0) {
    std::vector<std::int32_t> written;
    generate(
        CheckpointReader(resolve_checkpoint(run)), config, {'a'}, {.tokens = 5, .temperature = 0},
        [&](std::int32_t token) { written.push_back(token); }, ledger);
    CHECK(written.size() == 5);
  }
  world.ranks.barrier();
}

// The two halves run as two tests, one after the other, on two and on three ranks: see CMakeLists.txt.

namespace {

Config moving_config() {
  Config config = lookup_config(KOZERO_FAMILY_FOLDER "/text");
  config.batch = {.micro = 1, .accumulate = {}, .global = 6};
  config.checkpoint = {.every = 4, .keep = 3};
  return config;
}

} // namespace

TEST_CASE_METHOD(World, "a run of the family saves on its ranks", "[.saves]") {
  if (world.rank() == 0) {
    std::filesystem::remove_all(KOZERO_FAMILY_FOLDER);
    std::filesystem::create_directories(KOZERO_FAMILY_FOLDER);
    std::ofstream(KOZERO_FAMILY_FOLDER "/text") << text_of(3000);
  }
  world.ranks.barrier();
  Config config = moving_config();
  config.zero.stage = 2;
  trained(config, KOZERO_FAMILY_FOLDER "/saved", world);
}

TEST_CASE_METHOD(World, "a run of the family goes on on other ranks", "[.resumes]") {
  Metrics const saved(KOZERO_FAMILY_FOLDER "/saved");
  std::vector<double> const losses = saved.losses();
  REQUIRE(losses.size() == 8);
  std::filesystem::path const step_4 = KOZERO_FAMILY_FOLDER "/saved/checkpoints/step-00000004";
  Config config = moving_config();
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    config.zero.stage = stage;
    // The state is that of the checkpoint: the trainer compares the hash. The rest of the losses are the same but for
    // the order of sums.
    Metrics const resumed = trained(config, KOZERO_FAMILY_FOLDER "/resumed", world, step_4);
    CHECK(largest_difference(resumed.losses(), {losses.begin() + 4, losses.end()}) < 1e-5);
  }
}
