#include "data/batch_reader.hpp"

#include "data/batch_shape.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <string>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr std::int64_t context = 4;

/// Token i of the file is i.
Corpus counting_corpus(TemporaryFolder const& folder, int tokens) {
  std::string text;
  for (int i = 0; i < tokens; ++i) text += static_cast<char>(i);
  return open_corpus({folder.write("count.txt", text), "0", DataFormat::text}, 256, context);
}

struct Rows {
  explicit Rows(std::int64_t micro)
      : inputs(static_cast<std::size_t>(micro * context), 99), targets(static_cast<std::size_t>(micro * context), 99) {}
  TokenRows spans() { return {context, inputs, targets}; }
  std::vector<std::int32_t> inputs, targets;
};

} // namespace

TEST_CASE("training rows are the sampled windows, with the next token as target") {
  TemporaryFolder const folder;
  Corpus const corpus = counting_corpus(folder, 41); // 10 windows
  REQUIRE(corpus.train.windows == 10);
  Sampler const sampler(3, 10);
  Rows rows(3);
  read_training_rows(corpus.train, sampler, 9, rows.spans()); // over the end of the first epoch
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t t = 0; t < context; ++t) {
      auto const at = static_cast<std::size_t>(row * context + t);
      CHECK(rows.inputs[at] == sampler.window(9 + row) * context + t);
      CHECK(rows.targets[at] == rows.inputs[at] + 1);
    }
  }
}

TEST_CASE("an evaluation has every window's targets once on any number of ranks") {
  TemporaryFolder const folder;
  Corpus const corpus = counting_corpus(folder, 7 * context + 1);
  TokenSet const& set = corpus.train;
  REQUIRE(set.windows == 7);
  for (std::int64_t const ranks : {1, 2, 3, 5}) {
    BatchShape const shape{2, 1, ranks};
    std::vector<int> times(7 * context + 1);
    for (std::int64_t batch = 0; batch < evaluation_batches(set.windows, shape, 100); ++batch) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        Rows rows(shape.micro);
        read_evaluation_rows(set, shape.first_sample(batch, 0, rank), rows.spans());
        for (std::size_t i = 0; i < rows.targets.size(); ++i) {
          if (rows.targets[i] == no_target) {
            CHECK(rows.inputs[i] == 0); // a legal token
          } else {
            CHECK(rows.targets[i] == rows.inputs[i] + 1);
            ++times[static_cast<std::size_t>(rows.targets[i])];
          }
        }
      }
    }
    std::vector<int> expected(times.size(), 1);
    expected[0] = 0; // the first token is nobody's target
    CHECK(times == expected);
  }
}
