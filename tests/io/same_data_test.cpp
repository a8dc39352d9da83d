// Ranks that read different files, and runs that go on with others.
#include "comm/survey.hpp"
#include "core/error.hpp"
#include "io/resume_data.hpp"
#include "io/same_data.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

Corpus opened(std::string const& train, std::string const& validation = "0.5") {
  return open_corpus({train, validation, DataFormat::text}, 256, 8);
}

std::string const text(200, 'x');
std::string const other_text = text.substr(1) + 'y';

} // namespace

TEST_CASE("another file on one rank is refused on all, with rank, host and path") { // CASES 33
  auto const ranks = make_world_ranks();
  TemporaryFolder const folder; // each rank's own
  bool const is_last = ranks->rank() == ranks->size() - 1;
  require_same_data(opened(folder.write("same", text)), *ranks);
  require_same_data(opened(folder.write("same", text), folder.write("held out", text)), *ranks);

  std::string const path = folder.write("train", is_last ? other_text : text);
  std::string const held_out = folder.write("held out", is_last ? text.substr(2) : text);
  if (ranks->size() == 1) return;
  for (Corpus const& corpus : {opened(path), opened(folder.file("same"), held_out)}) {
    std::string const message = message_of<SharedError>([&] { require_same_data(corpus, *ranks); });
    INFO(message);
    CHECK(contains(message, {"rank 0 on host " + host_name(),
                             "rank " + std::to_string(ranks->size() - 1) + " on host " + host_name(), "200 bytes",
                             "; give all hosts"}));
    auto texts = ranks->gather(message);
    CHECK(texts.front() == texts.back());
    if (is_last) CHECK(contains(message, {"'" + (corpus.validation_file() ? held_out : path) + "'"}));
  }
}

TEST_CASE("data is compared with a checkpoint's by what it is, not by where it lies") { // CASES 34
  TemporaryFolder const folder;
  Corpus const corpus = opened(folder.write("train", text), folder.write("held out", other_text));
  CheckpointInfo info;
  CHECK(!compare_data(info, corpus).known);
  CHECK(compare_data(info, corpus).other.empty());

  info.training_data = corpus.train.file->fingerprint();
  info.validation_data = corpus.validation_file()->fingerprint();
  ResumedData const moved = compare_data(info, opened(folder.write("elsewhere", text), folder.file("held out")));
  CHECK(moved.known);
  CHECK(moved.other.empty());
  CHECK(moved.same == std::vector<std::string>{"data.train", "data.validation"});
  ResumedData const changed = compare_data(info, opened(folder.write("train", other_text), folder.file("held out")));
  REQUIRE(changed.other.size() == 1);
  CHECK(contains(changed.other[0], {"data.train", folder.file("train"), "200 bytes", info.training_data->hash}));
  ResumedData const fraction = compare_data(info, opened(folder.file("elsewhere")));
  CHECK(fraction.other.empty());
  CHECK(fraction.same == std::vector<std::string>{"data.train"});
}
