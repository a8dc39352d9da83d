// Decks in checkpoints of older versions: never refused for a key that is not today's.
#include "core/error.hpp"
#include "io/checkpoint.hpp"
#include "io/deck.hpp"
#include "support/catch.hpp"
#include "support/gpt2_model.hpp"
#include "support/temporary_folder.hpp"

#include <array>
#include <set>

using namespace kozero;
using namespace kozero::test;

namespace {

/// As version 1 stored it, with a value that is no default for every kind of slot.
std::string stored_deck() {
  Config config;
  config.run.updates = 77;
  config.model = gpt2_model({.layers = 5, .heads = 3, .width = 21, .context = 33, .vocabulary = 257, .tied = false});
  config.data.train = "tokens.bin";
  config.batch.micro = 4;
  config.batch.global = 12;
  config.optimizer.betas = {0.8, 0.99};
  config.schedule.kind = ScheduleKind::wsd;
  config.precision.compute = ComputeType::fp16;
  return print_deck(config, {}, "deck");
}

std::string with(std::string text, std::string const& line, std::string const& other) {
  auto const at = text.find(line);
  REQUIRE(at != std::string::npos);
  return text.replace(at, line.size(), other);
}

std::string message(std::string const& text) {
  return message_of<Error>([&] { read_stored_deck(text, 1); });
}

} // namespace

TEST_CASE("a stored deck of today's keys reads as the strict reader reads it", "[deck]") {
  StoredDeck const stored = read_stored_deck(stored_deck(), 1);
  CHECK(stored.config == read_deck(stored_deck(), "deck").config);
  CHECK(stored.unread.empty());
  CHECK(stored.notes.empty());
}

TEST_CASE("decks that commit 4a3c0c7 stored read without a note", "[deck]") { // CASES 47
  for (char const* const run :
       {"stage-0", "stage-1", "stage-2-half-offload", "stage-3-offload", "delayed", "delayed-bf16", "fp16", "untied"}) {
    INFO(run);
    auto const folder = std::filesystem::path(KOZERO_SOURCE_DIR) / "tests/reference/checkpoints-v1" / run;
    CheckpointInfo const info = CheckpointReader(folder / "step-00000004").info();
    StoredDeck const stored = read_stored_deck(info.deck, info.format_version);
    CHECK(stored.notes.empty());
    ModelConfig model = gpt2_model({.layers = 1, .heads = 3, .width = 9, .context = 7, .vocabulary = 31});
    if (std::string(run) == "stage-1") gpt2_of(model).layers = 2;
    if (std::string(run) == "untied") gpt2_of(model).tied = false;
    CHECK(stored.config.model == model);
    CHECK(stored.config.run.name == run);
    CHECK(stored.config.optimizer.lr == 0.03);
    CHECK(stored.config.batch.global == 6);
  }
}

TEST_CASE("what a stored deck says otherwise than today's keys is left out, and the rest arrives",
          "[deck]") { // CASES 47
  Config const whole = read_stored_deck(stored_deck(), 1).config;
  struct Change {
    char const *line, *other;
    char const* key; // that falls back; null: none
  };
  for (Change const change :
       {Change{"run:\n", "run:\n  colour: red\n", nullptr},
        Change{"run:\n", "future:\n  keys: {of: [any, kind]}\nrun:\n", nullptr},
        Change{"kind: wsd", "kind: step", "schedule.kind"},
        Change{"compute: fp16", "compute: fp8", "precision.compute"},
        Change{"updates: 77", "updates: -1", "run.updates"}, Change{"updates: 77", "updates: many", "run.updates"},
        Change{"global: 12", "global: 1e99", "batch.global"},
        Change{"betas: [0.8, 0.99]", "betas: [0.8, 0.99, 0.999]", "optimizer.betas"},
        Change{"betas: [0.8, 0.99]", "betas: [0.8, 1.5]", "optimizer.betas"},
        Change{"betas: [0.8, 0.99]", "betas: {first: 0.8}", "optimizer.betas"},
        Change{"size: none", "size: gpt3-175b", "model.size"}}) {
    INFO(change.other);
    StoredDeck const stored = read_stored_deck(with(stored_deck(), change.line, change.other), 1);
    CHECK(stored.notes.size() == 1);
    CHECK(stored.notes.at(0).find("deck of format_version 1:") == 0);
    Config expected = whole;
    std::set<std::string> unread;
    if (change.key) {
      unread.insert(change.key);
      Config const preset;
      if (*unread.begin() == "schedule.kind") expected.schedule.kind = preset.schedule.kind;
      if (*unread.begin() == "precision.compute") expected.precision.compute = preset.precision.compute;
      if (*unread.begin() == "run.updates") expected.run.updates = preset.run.updates;
      if (*unread.begin() == "batch.global") expected.batch.global = preset.batch.global;
      if (*unread.begin() == "optimizer.betas") expected.optimizer.betas = preset.optimizer.betas;
    }
    CHECK(stored.unread == unread);
    CHECK(stored.config == expected);
  }
}

TEST_CASE("a stored deck keeps the paths that a deck of today may not have", "[deck]") { // CASES 47
  auto const text = with(stored_deck(), "dir: runs/run", "dir: ~/runs/$USER");
  CHECK(read_stored_deck(text, 1).config.run.dir == "~/runs/$USER");
  CHECK(read_stored_deck(text, 1).notes.empty());
}

TEST_CASE("keys of today that a stored deck has not have their defaults", "[deck]") {
  auto const text = stored_deck();
  auto const from = text.find("checkpoint:\n");
  REQUIRE(from != std::string::npos);
  StoredDeck const stored = read_stored_deck(text.substr(0, from), 1);
  CHECK(stored.notes.empty());
  CHECK(stored.config == read_stored_deck(text, 1).config);
}

TEST_CASE("a stored deck that does not say what the model is, is refused in words", "[deck]") {
  for (auto const& [line, other, key] :
       {std::array{"width: 21", "width: wide", "model.width"}, std::array{"width: 21", "width: 0", "model.width"},
        std::array{"layers: 5", "layers: 1099511627776", "model.layers"},
        std::array{"family: gpt2", "family: gpt7", "model.family"},
        std::array{"tied: false", "tied: perhaps", "model.tied"}}) {
    INFO(other);
    CHECK(contains(message(with(stored_deck(), line, other)), {"does not say what its model is", key}));
  }
  for (char const* const text : {"", "- a list\n", "a: [", "\xff"}) {
    CHECK(contains(message(text), {"does not say what its model is"}));
  }
}
