// Decks that are right: what they mean, where it comes from, and that they read back the same.
#include "config/schema.hpp"
#include "core/error.hpp"
#include "io/deck.hpp"
#include "support/catch.hpp"
#include "support/gpt2_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

using namespace kozero;
using namespace kozero::test;

namespace {

std::string deck_file(std::string const& name) { return read_text_file(KOZERO_SOURCE_DIR "/inputs/" + name); }

// A deck in flow style, with all sections.
constexpr char const* design = R"(
run:         {name: quickstart, dir: runs/quickstart, seed: 1337, updates: 200, time_limit: 10min}
model:       {family: gpt2, layers: 4, heads: 4, width: 128, context: 128, vocabulary: 256, tied: true}  # or size: gpt2-124m
data:        {train: corpus.txt, validation: 0.05, format: auto}            # a fraction, or a file
batch:       {micro: 8, accumulate: 4}                                       # or global: 64
optimizer:   {lr: 1e-3, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.1, clip: 1.0, max_skips: 10}
schedule:    {kind: cosine, warmup: 20, min_lr: 1e-4}
precision:   {compute: bf16, gradients: fp32}                                # fp32 | bf16 | fp16; compute | fp32
zero:        {stage: 2}
offload:     {optimizer: none, ratio: 1.0, delayed_update: {start: 40}}      # none | host
activations: {recompute: none}                                               # none | unit
memory:      {device_limit: none, host_limit: none}
checkpoint:  {every: 100, keep: 3}
evaluate:    {every: 50, batches: 10}
)";

/// Any legal value, printable as the key prints it.
void randomize(Key const& key, std::mt19937_64& random) {
  auto const real = [&] {
    double value = std::bit_cast<double>(random());
    while (!key.limits.contain(value)) value = std::bit_cast<double>(random());
    return value;
  };
  auto const whole = [&] {
    auto value = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    while (!key.limits.contain(static_cast<double>(value)))
      value = static_cast<std::int64_t>(random() >> (1 + random() % 63));
    return value;
  };
  if (auto* field = std::get_if<std::int64_t*>(&key.slot)) **field = whole();
  if (auto* field = std::get_if<std::optional<std::int64_t>*>(&key.slot)) {
    if (random() % 2) **field = whole();
  }
  if (auto* field = std::get_if<double*>(&key.slot)) **field = real();
  if (auto* field = std::get_if<std::optional<double>*>(&key.slot)) {
    if (random() % 2) **field = real();
  }
  if (auto* field = std::get_if<std::array<double, 2>*>(&key.slot)) **field = {real(), real()};
  if (auto* field = std::get_if<bool*>(&key.slot)) **field = random() % 2 != 0;
  if (auto* field = std::get_if<Choice>(&key.slot)) field->set(field->words[random() % field->words.size()]);
  if (auto* field = std::get_if<std::string*>(&key.slot)) {
    std::vector<std::string> const pieces = {
        "a", "7",   ".", "/",   "-",  " b",    "\"", "\\", "#", ": ",           "'",   "é", "null", "{", "]", "&", "*",
        "!", "\\n", "%", "0.5", "~x", "true.", "@",  "`",  "|", "\xe2\x82\xac", "---", "?x"};
    std::string text;
    for (auto n = 1 + random() % 6; n > 0; --n) text += pieces[random() % pieces.size()];
    while (text.front() == ' ') text.erase(0, 1);
    while (text.back() == ' ') text.pop_back();
    if (text.empty()) text = "xy";
    **field = text;
  }
}

} // namespace

TEST_CASE("the deck of the design says what it says", "[deck]") {
  Deck const deck = read_deck(design, "deck.yaml");
  Config expected;
  expected.run = {"quickstart", "runs/quickstart", 1337, 200, 600.0};
  expected.model = gpt2_model();
  expected.data = {"corpus.txt", "0.05", DataFormat::automatic};
  expected.batch = {8, 4, {}};
  expected.optimizer = {1e-3, {0.9, 0.95}, 1e-8, 0.1, 1.0, 10};
  expected.schedule = {ScheduleKind::cosine, 20, 1e-4, 0.2};
  expected.precision = {.compute = ComputeType::bf16, .gradients = GradientType::fp32};
  expected.offload.delayed_update.start = 40;
  expected.zero = {2};
  expected.checkpoint = {100, 3};
  expected.evaluate = {50, 10};
  CHECK(deck.config == expected);
  REQUIRE(deck.warnings.size() == 1); // the delay waits for offload.optimizer: host
  CHECK(deck.warnings[0].find("has no effect (offload.optimizer is none)") != std::string::npos);
}

TEST_CASE("keys that are left out have the structs' defaults", "[deck]") {
  Config expected;
  expected.data.train += 'x';
  CHECK(read_deck("data: {train: x}", "deck.yaml").config == expected);
  CHECK(read_deck("\xef\xbb\xbf---\r\ndata:\r\n  train: x\r\n...\r\n", "deck.yaml").config == expected);
}

TEST_CASE("units mean what they say", "[deck]") {
  Config const config = read_deck("data: {train: x}\nmodel: {vocabulary: 50k}\nrun: {time_limit: 1.5h, updates: 2M}\n"
                                  "memory: {device_limit: 512MiB, host_limit: 3GB}\n",
                                  "deck.yaml")
                            .config;
  CHECK(config.model.vocabulary == 50'000);
  CHECK(config.run.time_limit_s == 5400.0);
  CHECK(config.run.updates == 2'000'000);
  CHECK(config.memory.device_limit_bytes == 536'870'912);
  CHECK(config.memory.host_limit_bytes == 3'000'000'000);
}

TEST_CASE("the command line wins over the deck, and its last word over the others", "[deck]") {
  Deck const deck =
      read_deck("data: {train: x}\noptimizer: {lr: 1e-3, clip: 2}\n", "deck.yaml",
                {"optimizer.lr=1e-4", "optimizer.lr=5e-4", "optimizer.betas=[0.8, 0.9]", "optimizer.clip=none",
                 "run.name=a=b", "run.time_limit=2h", "model.tied=false", "data={validation: v.bin, format: text}"});
  CHECK(deck.config.optimizer.lr == 5e-4);
  CHECK(deck.config.optimizer.betas == std::array<double, 2>{0.8, 0.9});
  CHECK_FALSE(deck.config.optimizer.clip.has_value());
  CHECK(deck.config.run.name == "a=b");
  CHECK(deck.config.run.time_limit_s == 7200.0);
  CHECK_FALSE(gpt2_of(deck.config.model).tied);
  CHECK(deck.config.data == DataConfig{"x", "v.bin", DataFormat::text});
}

TEST_CASE("every value knows where it comes from", "[deck]") {
  Deck const deck = read_deck("data:\n  train: x\nmodel:\n  size: gpt2-355m\n  context: 256\n", "my/deck.yaml",
                              {"run.updates=5", "model.layers=2"});
  // A key beside the named size wins, wherever it is said.
  ModelConfig expected = gpt2_model({2, 16, 1024, 256, 50257});
  expected.size = deck.config.model.size;
  CHECK(deck.config.model == expected);
  CHECK(deck.config.model.size == "gpt2-355m");
  CHECK(deck.origins.at("data.train").kind == Origin::Kind::deck);
  CHECK(deck.origins.at("data.train").line == 2);
  CHECK(deck.origins.at("data.train").column == 10);
  CHECK(deck.origins.at("model.context").kind == Origin::Kind::deck);
  CHECK(deck.origins.at("model.width").kind == Origin::Kind::named_size);
  CHECK(deck.origins.at("model.layers").kind == Origin::Kind::command_line);
  CHECK(deck.origins.at("run.seed").kind == Origin::Kind::preset);
  auto const has_line = [&](std::string const& key, std::string const& origin) {
    std::size_t const at = deck.resolved_yaml.find("\n  " + key + " ");
    if (at == std::string::npos) return false;
    std::string const line = deck.resolved_yaml.substr(at + 1, deck.resolved_yaml.find('\n', at + 1) - at - 1);
    return line.ends_with("  # " + origin);
  };
  CHECK(has_line("train: x", "my/deck.yaml:2"));
  CHECK(has_line("width: 1024", "gpt2-355m"));
  CHECK(has_line("layers: 2", "command line"));
  CHECK(has_line("seed: 1337", "default"));
}

TEST_CASE("warnings do not stop a deck, and say where", "[deck]") {
  Deck const deck =
      read_deck("evaluate: {every: 5}\ndata: {train: x, validation: 0}\nschedule: {warmup: 200}\n", "d.yaml");
  REQUIRE(deck.warnings.size() == 2);
  CHECK(deck.warnings[0].starts_with("d.yaml:1:19: evaluate.every: "));
  CHECK(deck.warnings[1].starts_with("d.yaml:3:20: schedule.warmup: 200 is more than run.updates = 100 "));
}

TEST_CASE("the resolved deck reads back as the same configuration", "[deck]") {
  for (std::string const& text :
       {std::string(design), deck_file("quickstart.yaml"), deck_file("gpt2-124m.yaml"), deck_file("tests/odd.yaml"),
        deck_file("tests/tiny.yaml"), deck_file("offload-capacity.yaml")}) {
    Deck const deck = read_deck(text, "deck\n.yaml", {"run.time_limit=90min"});
    Deck const again = read_deck(deck.resolved_yaml, "resolved");
    CHECK(again.config == deck.config);
    // All keys are there, and nothing is left to defaults.
    for (auto const& [key, origin] : again.origins) {
      INFO(key);
      CHECK(origin.kind == Origin::Kind::deck);
    }
  }
}

TEST_CASE("any configuration that is printed reads back the same", "[deck]") {
  std::mt19937_64 random(7);
  int read = 0;
  for (int i = 0; i < 500; ++i) {
    Config config;
    for (auto const& key : keys_of(config)) randomize(key, random);
    // What is legal by itself, but not beside the rest.
    gpt2_of(config.model).heads = 1;
    gpt2_of(config.model).layers = gpt2_of(config.model).width = 1 + static_cast<std::int64_t>(random() % 1000);
    config.model.context = 1 + static_cast<std::int64_t>(random() % 1000);
    config.batch.global.reset();
    config.schedule.min_lr = std::min(config.schedule.min_lr, config.optimizer.lr);
    config.precision.gradients = GradientType::fp32;
    config.parallel = {};
    config.offload.optimizer = OffloadTarget::none;
    config.precision.loss_scale.initial = 4096;
    if (validation_fraction(config.data)) config.data.validation = "0.5";
    for (std::string* path : {&config.run.dir, &config.data.train, &config.data.validation}) {
      if (path->front() == '~') path->insert(0, "./");
    }
    std::string const yaml = print_deck(config, {}, "random");
    INFO(yaml);
    CHECK(read_deck(yaml, "printed").config == config);
    ++read;
  }
  CHECK(read == 500);
}

TEST_CASE("the decks of this repository are sound", "[deck]") {
  auto const parameters = [](ModelConfig const& m) {
    auto const& [layers, heads, width, tied] = gpt2_of(m);
    return (m.vocabulary + m.context) * width + layers * (12 * width * width + 13 * width) + 2 * width;
  };
  Deck const odd = read_deck(deck_file("tests/odd.yaml"), "odd.yaml");
  CHECK(odd.warnings.empty());
  CHECK(odd.config.model == gpt2_model({1, 3, 21, 33, 257}));
  CHECK(parameters(odd.config.model) == 11'697);
  Deck const tiny = read_deck(deck_file("tests/tiny.yaml"), "tiny.yaml");
  CHECK(tiny.warnings.empty());
  CHECK(tiny.config.model == gpt2_model({1, 1, 3, 3, 5}));
  CHECK(parameters(tiny.config.model) == 177);
  Deck const quickstart = read_deck(deck_file("quickstart.yaml"), "quickstart.yaml");
  CHECK(quickstart.warnings.empty());
  CHECK(quickstart.config.model.vocabulary == 256);
  CHECK(parameters(quickstart.config.model) > 500'000);
  CHECK(parameters(quickstart.config.model) < 3'000'000);
  Deck const gpt2 = read_deck(deck_file("gpt2-124m.yaml"), "gpt2-124m.yaml");
  CHECK(gpt2.warnings.empty());
  CHECK(gpt2.config.batch.micro == 4);
  CHECK(gpt2.config.model.context == 256);
}
