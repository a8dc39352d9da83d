#include "io/corpus.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <set>
#include <string>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

constexpr std::int64_t context = 8; // T

std::string letters(std::int64_t count) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

std::string refusal(DataConfig const& data) {
  return message_of<InputError>([&] { open_corpus(data, 256, context); });
}

/// The places in the file of the targets of all windows of a set.
std::set<std::int64_t> target_places(TokenSet const& set) {
  std::set<std::int64_t> places;
  for (std::int64_t w = 0; w < set.windows; ++w) {
    for (std::int64_t t = 1; t <= context; ++t) places.insert(set.tokens.begin + w * context + t);
  }
  return places;
}

} // namespace

TEST_CASE("a window needs one token more than the context") {
  CHECK(windows(0, context) == 0);
  CHECK(windows(1, context) == 0);
  CHECK(windows(context, context) == 0);
  CHECK(windows(context + 1, context) == 1);
  CHECK(windows(context + 2, context) == 1);
  CHECK(windows(2 * context, context) == 1);
  CHECK(windows(2 * context + 1, context) == 2);
  CHECK(windows(5, 1) == 4);
}

TEST_CASE("a training file without a window says how many tokens it has and needs") {
  TemporaryFolder const folder;
  for (std::int64_t const tokens : {std::int64_t{0}, std::int64_t{1}, context}) {
    DataConfig const data{folder.write("c.txt", letters(tokens)), "0", DataFormat::automatic};
    CHECK(contains(refusal(data), {"c.txt", "has " + std::to_string(tokens) + " tokens, needs 9 (", "; use"}));
  }
  for (std::int64_t const tokens : {context + 1, context + 2}) {
    DataConfig const data{folder.write("c.txt", letters(tokens)), "0", DataFormat::automatic};
    Corpus const corpus = open_corpus(data, 256, context);
    CHECK(corpus.train.windows == 1);
    CHECK(corpus.validation.windows == 0);
    CHECK(corpus.validation.file == nullptr);
  }
}

TEST_CASE("a training file that is a folder or missing is refused") {
  TemporaryFolder const folder;
  CHECK(contains(refusal({folder.path(), "0.1", DataFormat::automatic}), {"folder"}));
  CHECK(contains(refusal({folder.file("no.txt"), "0.1", DataFormat::automatic}), {"no.txt", "No such file"}));
  auto const text = folder.write("c.txt", letters(100));
  CHECK(contains(refusal({text, folder.file("no.txt"), DataFormat::automatic}), {"no.txt", "No such file"}));
}

TEST_CASE("a fraction holds out whole windows at the end") {
  TemporaryFolder const folder;
  std::int64_t const tokens = 20 * context + 6; // 20 windows
  auto const path = folder.write("c.txt", letters(tokens));
  for (auto const& [fraction, held_out] : std::vector<std::pair<std::string, std::int64_t>>{
           {"0.001", 1}, {"0.05", 1}, {"0.1", 2}, {"0.12", 2}, {"0.5", 10}, {"0.99", 19}, {"5e-2", 1}}) {
    CAPTURE(fraction);
    Corpus const corpus = open_corpus({path, fraction, DataFormat::automatic}, 256, context);
    CHECK(corpus.train.windows == 20 - held_out);
    CHECK(corpus.validation.windows == held_out);
    CHECK(windows(corpus.train.tokens.size(), context) == corpus.train.windows);
    CHECK(windows(corpus.validation.tokens.size(), context) == corpus.validation.windows);
    CHECK(corpus.validation.tokens.end == tokens);

    // No target is in both, and none but the file's remainder in neither.
    auto const train = target_places(corpus.train);
    auto const validation = target_places(corpus.validation);
    CHECK(*train.rbegin() + 1 == *validation.begin());
    CHECK(*train.begin() == 1);
    CHECK(*validation.rbegin() == 20 * context);
    CHECK(static_cast<std::int64_t>(train.size() + validation.size()) == 20 * context);
  }
}

TEST_CASE("a split that leaves a part without a window is refused") {
  TemporaryFolder const folder;
  CHECK(contains(refusal({folder.write("c.txt", letters(2 * context)), "0.5", DataFormat::automatic}),
                 {"c.txt", "has 16 tokens, needs 17 (", "; use"}));
  Corpus const corpus =
      open_corpus({folder.write("c.txt", letters(2 * context + 1)), "0.01", DataFormat::automatic}, 256, context);
  CHECK(corpus.train.windows == 1);
  CHECK(corpus.validation.windows == 1);
}

TEST_CASE("a validation file stands for itself and must have a window") {
  TemporaryFolder const folder;
  auto const train = folder.write("c.txt", letters(100));
  Corpus const corpus =
      open_corpus({train, folder.write("v.txt", letters(context + 1)), DataFormat::automatic}, 256, context);
  CHECK(corpus.train.tokens == Interval{0, 100});
  CHECK(corpus.train.windows == 12);
  CHECK(corpus.validation.file->path() == folder.file("v.txt"));
  CHECK(corpus.validation.windows == 1);
  CHECK(contains(refusal({train, folder.write("v.txt", letters(context)), DataFormat::automatic}),
                 {"v.txt", "has 8 tokens, needs 9 ("}));
}

TEST_CASE("zero is no validation and other numbers are refused") {
  TemporaryFolder const folder;
  auto const train = folder.write("c.txt", letters(100));
  for (std::string const none : {"0", "0.0"}) {
    Corpus const corpus = open_corpus({train, none, DataFormat::automatic}, 256, context);
    CHECK(corpus.train.windows == 12);
    CHECK(corpus.validation.windows == 0);
  }
  for (std::string const bad : {"1", "1.5", "-0.1", "nan", "inf"}) {
    CHECK(contains(refusal({train, bad, DataFormat::automatic}), {"data.validation", bad, "; set"}));
  }
}

TEST_CASE("a window is T inputs and the target after them") {
  TemporaryFolder const folder;
  Corpus const corpus =
      open_corpus({folder.write("c.txt", letters(5 * context + 3)), "0.4", DataFormat::automatic}, 256, context);
  REQUIRE(corpus.validation.windows == 2);
  auto const text = [](TokenSet const& set, std::int64_t window) {
    std::vector<std::int32_t> inputs(context), targets(context);
    set.read_window(window, inputs, targets);
    return std::string(inputs.begin(), inputs.end()) + "|" + std::string(targets.begin(), targets.end());
  };
  CHECK(text(corpus.train, 0) == "abcdefgh|bcdefghi");
  CHECK(text(corpus.train, 2) == "qrstuvwx|rstuvwxy");
  CHECK(text(corpus.validation, 0) == "yzabcdef|zabcdefg"); // token 24 on
  CHECK(text(corpus.validation, 1) == "ghijklmn|hijklmno"); // token 32 on
}
