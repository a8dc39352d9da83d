// What a resumed run has otherwise than its checkpoint.
#include "config/compare.hpp"
#include "support/catch.hpp"

using namespace kozero;

TEST_CASE("equal configurations have no differences", "[compare]") { CHECK(compare_decks(Config{}, Config{}).empty()); }

TEST_CASE("differences come in the deck's order, with both values and what they do", "[compare]") {
  Config before;
  Config now;
  now.run.seed = 7;
  now.run.time_limit_s = 7200;
  now.model.size = "gpt2-124m"; // a name for the same numbers
  now.optimizer.betas = {0.9, 0.99};
  now.optimizer.clip.reset();
  now.zero.stage = 3;
  now.activations.recompute = Recompute::unit;
  now.checkpoint.every = 5;
  auto const differences = compare_decks(before, now);
  struct Row {
    char const *key, *before, *now;
    Severity severity;
  };
  using enum Severity;
  std::vector<Row> const expected = {{"run.seed", "1337", "7", forbidden},
                                     {"run.time_limit", "none", "2h", harmless},
                                     {"model.size", "none", "gpt2-124m", harmless},
                                     {"optimizer.betas", "[0.9, 0.95]", "[0.9, 0.99]", changes_numerics},
                                     {"optimizer.clip", "1", "none", changes_numerics},
                                     {"zero.stage", "0", "3", changes_numerics},
                                     {"activations.recompute", "none", "unit", harmless},
                                     {"checkpoint.every", "0", "5", harmless}};
  REQUIRE(differences.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(differences[i].key == expected[i].key);
    CHECK(differences[i].before == expected[i].before);
    CHECK(differences[i].now == expected[i].now);
    CHECK(differences[i].severity == expected[i].severity);
  }
}

TEST_CASE("offload is harmless, and its delay is not", "[compare]") {
  Config plain;
  Config offloaded;
  offloaded.offload = {.optimizer = OffloadTarget::host, .ratio = 0.5};
  Config delayed = offloaded;
  delayed.offload.delayed_update.start = 40;
  for (auto const& difference : compare_decks(plain, offloaded)) CHECK(difference.severity == Severity::harmless);
  CHECK(compare_decks(plain, offloaded).size() == 2);
  for (auto const& difference : compare_decks(delayed, plain)) {
    CHECK(difference.severity == Severity::changes_numerics);
  }
  CHECK(compare_decks(delayed, plain).size() == 3);
  Config elsewhere = delayed;
  elsewhere.offload.ratio = 1;
  CHECK(compare_decks(delayed, elsewhere).front().severity == Severity::harmless);
}

TEST_CASE("under topology the stage and the cut of a batch are harmless, and nothing else is", "[compare]") {
  Config before;
  before.batch.accumulate = 4;
  Config now;
  now.zero.stage = 3;
  now.batch.global = 32;
  auto const severities = [&] {
    std::vector<Severity> found;
    for (auto const& difference : compare_decks(before, now)) found.push_back(difference.severity);
    return found;
  };
  using enum Severity;
  CHECK(severities() == std::vector{changes_numerics, changes_numerics, changes_numerics});
  before.run.reproducibility = now.run.reproducibility = Reproducibility::topology;
  CHECK(severities() == std::vector{harmless, harmless, harmless});
  now.batch.micro = 4;
  CHECK(severities() == std::vector{changes_numerics, harmless, harmless, harmless});
  before.run.reproducibility = Reproducibility::rerun;
  CHECK(severities() == std::vector(5, changes_numerics));
}

TEST_CASE("another model or seed is another run", "[compare]") {
  Config config;
  for (auto const& key : keys_of(config)) {
    // A size only sets other keys, and attention may be computed another way from here on.
    bool const of_model = key.section() == "model" && key.path != "model.size" && key.path != "model.attention";
    bool const identity = key.path == "run.seed" || of_model;
    INFO(key.path);
    CHECK((key.severity == Severity::forbidden) == identity);
  }
}
