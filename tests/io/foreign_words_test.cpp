// What other trainers call things.
#include "config/schema.hpp"
#include "io/deck.hpp"
#include "io/foreign_words.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <set>

using namespace kozero;

TEST_CASE("a foreign word stands for a key that there is, and is none itself") { // CASES 51
  Config config;
  auto const keys = keys_of(config);
  std::set<std::string_view> seen;
  for (auto const& [word, key, note] : foreign_words()) {
    INFO(word);
    CHECK(seen.insert(word).second);
    CHECK(std::ranges::count(keys, key, &Key::path) == 1);
    for (auto const& known : keys) CHECK(known.path.substr(known.path.rfind('.') + 1) != word);
  }
}

TEST_CASE("a deck with other trainers' words is told ours") { // CASES 51
  struct Row {
    char const* deck;
    char const* advice;
  };
  for (Row const row :
       {Row{"gradient_accumulation_steps: 4", "it is 'batch.accumulate' here"},
        Row{"batch: {batch_size: 4}", "it is 'batch.micro' here"},
        Row{"model: {n_layer: 4}", "it is 'model.layers' here"}, Row{"model: {n_embd: 4}", "it is 'model.width' here"},
        Row{"learning-rate: 1", "it is 'optimizer.lr' here"},
        Row{"model: {vocab_size: 4}", "it is 'model.vocabulary' here"},
        Row{"dtype: bfloat16", "it is 'precision.compute' here"},
        Row{"train_micro_batch_size_per_gpu: 4", "it is 'batch.micro' here"}}) {
    INFO(row.deck);
    try {
      read_deck(std::string("data: {train: x}\n") + row.deck, "deck.yaml", {});
      FAIL("it was read");
    } catch (std::exception const& error) {
      INFO(error.what());
      CHECK(std::string(error.what()).find(row.advice) != std::string::npos);
    }
  }
}
