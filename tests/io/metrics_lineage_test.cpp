// Metrics of runs that went on from one checkpoint more than once. Lines of lineage "a" and "b" differ in their loss.
#include "io/metrics_lineage.hpp"

#include "comm/self_ranks.hpp"
#include "core/error.hpp"
#include "io/checkpoint.hpp"
#include "io/metrics.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

namespace {

class Story {
public:
  /// Writes batches [first, last] of a lineage, and marks the last.
  MetricsMark write(MetricsFile& metrics, char lineage, std::int64_t first, std::int64_t last) const {
    for (std::int64_t batch = first; batch <= last; ++batch) {
      metrics.update({.batch = batch, .updates_applied = batch, .loss = static_cast<double>(lineage)});
    }
    return metrics.mark();
  }
  /// "a1 a2 e2 b3": what a file tells.
  std::string read(std::string const& name) const {
    std::istringstream in(folder.read(name));
    std::string story;
    for (std::string line; std::getline(in, line);) {
      auto const object = nlohmann::json::parse(line);
      if (!story.empty()) story += ' ';
      story += object.contains("event")      ? 'E'
               : object.contains("val_loss") ? 'e'
                                             : static_cast<char>(object.at("loss").get<double>());
      if (object.contains("batch")) story += object.at("batch").dump();
    }
    return story;
  }

  TemporaryFolder folder;
  std::string path = folder.file("metrics.jsonl");
};

} // namespace

TEST_CASE("metrics belong to the checkpoint that goes on, not to the batches that it saw") { // CASES 32
  Story const story;
  auto metrics = MetricsFile::create(story.path);
  auto const at_2 = story.write(metrics, 'a', 1, 2);
  auto const at_4 = story.write(metrics, 'a', 3, 4);
  metrics.end({.updates_applied = 4, .reason = "done"});
  // From the older one, while that of 4 is there; killed before it saves.
  auto branch = MetricsFile::resume(story.path, {2, 2, at_2, ResumePoint::Former::kept});
  auto const b_at_3 = story.write(branch, 'b', 3, 3);
  story.write(branch, 'b', 4, 6);
  REQUIRE(story.read("metrics.jsonl") == "a1 a2 b3 b4 b5 b6");
  CHECK(story.read("metrics.1.jsonl") == "a1 a2 a3 a4 E");

  SECTION("from the newest: its own lines") {
    auto again = MetricsFile::resume(story.path, {4, 4, at_4});
    story.write(again, 'c', 5, 5);
    CHECK(story.read("metrics.jsonl") == "a1 a2 a3 a4 c5");
    CHECK(story.read("metrics.2.jsonl") == "a1 a2 b3 b4 b5 b6"); // it may have checkpoints too
    SECTION("and back") {
      MetricsFile::resume(story.path, {3, 3, b_at_3, ResumePoint::Former::kept});
      CHECK(story.read("metrics.jsonl") == "a1 a2 b3");
    }
  }
  SECTION("from the lineage of the file: nothing more is kept") {
    MetricsFile::resume(story.path, {3, 3, b_at_3});
    CHECK(story.read("metrics.jsonl") == "a1 a2 b3");
    CHECK(!fs::exists(story.folder.file("metrics.2.jsonl")));
  }
  SECTION("a checkpoint of an older version goes by its batches") {
    MetricsFile::resume(story.path, {4, 4});
    CHECK(story.read("metrics.jsonl") == "a1 a2 b3 b4");
  }
  SECTION("one of which no file knows takes nobody's lines, and removes none") {
    auto const mark = GENERATE_COPY(MetricsMark{at_4.bytes, at_2.hash}, MetricsMark{1'000'000, at_2.hash});
    MetricsFile::resume(story.path, {4, 4, mark});
    CHECK(story.read("metrics.jsonl").empty());
    CHECK(story.read("metrics.2.jsonl") == "a1 a2 b3 b4 b5 b6");
  }
  SECTION("a kill between the two names loses nothing") {
    fs::rename(story.path, story.folder.file("metrics.2.jsonl"));
    MetricsFile::resume(story.path, {3, 3, b_at_3});
    CHECK(story.read("metrics.jsonl") == "a1 a2 b3");
  }
}

TEST_CASE("an evaluation that followed a checkpoint stays, once, and is known") { // CASES 32
  Story const story;
  auto metrics = MetricsFile::create(story.path);
  auto const mark = story.write(metrics, 'a', 1, 2);
  CHECK(!MetricsFile::resume(story.path, {2, 2, mark}).ends_evaluated());
  metrics = MetricsFile::resume(story.path, {2, 2, mark});
  metrics.evaluation({.batch = 2, .updates_applied = 2, .val_loss = 4});
  SECTION("killed behind it") {}
  SECTION("ended behind it") { metrics.end({.updates_applied = 2, .reason = "done"}); }
  SECTION("gone on behind it") { story.write(metrics, 'a', 3, 5); }
  SECTION("killed in the next line") { std::ofstream(story.path, std::ios::app) << R"({"batch":3,"upd)"; }
  for (auto const& known : {std::optional(mark), std::optional<MetricsMark>()}) {
    auto const again = MetricsFile::resume(story.path, {2, 2, known});
    CHECK(again.ends_evaluated());
    CHECK(story.read("metrics.jsonl") == "a1 a2 e2");
  }
}

TEST_CASE("an evaluation before a delayed update is not one of the state after it") { // CASES 32
  Story const story;
  auto metrics = MetricsFile::create(story.path);
  metrics.update({.batch = 2, .updates_applied = 1, .loss = 'a', .pending = true});
  metrics.evaluation({.batch = 2, .updates_applied = 1, .val_loss = 4});
  auto const mark = metrics.mark();
  CHECK(MetricsFile::resume(story.path, {2, 1, mark}).ends_evaluated());
  CHECK(!MetricsFile::resume(story.path, {2, 2, mark}).ends_evaluated()); // saved when the update had been applied
}

TEST_CASE("a mark is that of all bytes so far, in files that go on too") { // CASES 32
  Story const story;
  auto metrics = MetricsFile::create(story.path);
  auto const first = story.write(metrics, 'a', 1, 3);
  CHECK(first.bytes == static_cast<std::int64_t>(fs::file_size(story.path)));
  auto again = MetricsFile::resume(story.path, {3, 3, first});
  CHECK(again.mark() == first);
  auto const second = story.write(again, 'a', 4, 4);
  CHECK(second.bytes == static_cast<std::int64_t>(fs::file_size(story.path)));
  CHECK(MetricsFile::resume(story.path, {4, 4, second}).mark() == second);
}

TEST_CASE("a checkpoint knows its metrics, and whether others lie further on") { // CASES 32
  TemporaryFolder const run;
  SelfRanks ranks;
  MetricsMark const mark{1234, "99aa06d3014798d86001c324468d497f"};
  auto const older = save_checkpoint(run.path(), {.counters = {5, 4, 1}, .metrics = mark}, {}, 2, ranks);
  auto const newer = save_checkpoint(run.path(), {.counters = {9, 8, 1}}, {}, 2, ranks);
  auto const of_older = resume_point(older, run.path());
  CHECK(of_older.batches_seen == 5);
  CHECK(of_older.updates_applied == 4);
  CHECK(of_older.mark == mark);
  CHECK(of_older.former == ResumePoint::Former::kept);
  auto const of_newer = resume_point(newer, run.path());
  CHECK(!of_newer.mark);
  CHECK(of_newer.former == ResumePoint::Former::replaced);
  TemporaryFolder const elsewhere;
  CHECK(resume_point(older, elsewhere.path()).former == ResumePoint::Former::replaced);
}

TEST_CASE("metrics that are no plain file are refused, and not waited for") { // CASES 41
  Story const story;
  SECTION("a link") { fs::create_symlink(story.folder.write("elsewhere", "{}\n"), story.path); }
  SECTION("a pipe") { REQUIRE(::mkfifo(story.path.c_str(), 0600) == 0); }
  SECTION("a folder") { fs::create_directory(story.path); }
  CHECK(contains(message_of<InputError>([&] {
                   MetricsFile::resume(story.path, {2, 2});
                 }),
                 {story.path, "; remove it"}));
}

TEST_CASE("a new file takes the place of a link or pipe, and what these lead to stays") { // CASES 41
  Story const story;
  SECTION("a link") { fs::create_symlink(story.folder.write("elsewhere", "dear"), story.path); }
  SECTION("a pipe") { REQUIRE(::mkfifo(story.path.c_str(), 0600) == 0); }
  auto metrics = MetricsFile::create(story.path);
  story.write(metrics, 'a', 1, 1);
  CHECK(story.read("metrics.jsonl") == "a1");
  if (fs::exists(story.folder.file("elsewhere"))) CHECK(story.folder.read("elsewhere") == "dear");
}

TEST_CASE("metrics follow their folder, and are written anew where they are lost") { // CASES 42
  Story const story;
  auto metrics = MetricsFile::create(story.path);
  story.write(metrics, 'a', 1, 2);
  CHECK(metrics.keep_at(story.path) == MetricsFile::Found::in_place);
  fs::rename(story.path, story.folder.file("moved.jsonl"));
  CHECK(metrics.keep_at(story.folder.file("moved.jsonl")) == MetricsFile::Found::in_place);
  story.write(metrics, 'a', 3, 3);
  fs::remove(story.folder.file("moved.jsonl"));
  story.write(metrics, 'a', 4, 4); // nobody sees it yet
  CHECK(metrics.keep_at(story.path) == MetricsFile::Found::written_anew);
  auto const mark = story.write(metrics, 'a', 5, 5);
  CHECK(story.read("metrics.jsonl") == "a1 a2 a3 a4 a5");
  CHECK(MetricsFile::resume(story.path, {5, 5, mark}).mark() == mark);
}
