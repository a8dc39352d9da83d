#include "io/metrics.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/file_size_limit.hpp"
#include "support/temporary_folder.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

using namespace kozero;
using namespace kozero::test;

namespace {

UpdateRecord update_of(std::int64_t batch) {
  return {.batch = batch,
          .updates_applied = batch,
          .loss = 5.5 - 0.25 * static_cast<double>(batch),
          .norm = 1.5,
          .clip = 0.5,
          .lr = 1e-3,
          .tokens_per_s = 1000,
          .seconds = 0.125};
}

/// Two batches, an evaluation, two batches, the end.
void write_run(std::string const& path) {
  MetricsFile metrics = MetricsFile::create(path);
  metrics.update(update_of(1));
  metrics.update(update_of(2));
  metrics.evaluation({.batch = 2, .updates_applied = 2, .val_loss = 4});
  metrics.update(update_of(3));
  metrics.update(update_of(4));
  metrics.end({.updates_applied = 4, .batches_seen = 4, .reason = "stopped"});
}

/// "u1 u2 e2": updates, evaluations and the end of a file, with their batches.
std::string story(std::string const& text) {
  std::string story;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    auto const object = nlohmann::json::parse(line);
    char const* const kind = object.contains("event") ? "end" : object.contains("val_loss") ? "e" : "u";
    story += kind + object.value("batch", nlohmann::json("")).dump() + " ";
  }
  return story;
}

} // namespace

TEST_CASE("a line is one object with the keys in their order") {
  TemporaryFolder const folder;
  {
    MetricsFile metrics = MetricsFile::create(folder.file("m.jsonl"));
    metrics.update({.batch = 3,
                    .updates_applied = 2,
                    .updates_skipped = 1,
                    .loss = 2.25,
                    .norm = 1.5,
                    .clip = 0.5,
                    .lr = 0.001,
                    .tokens_per_s = 1000,
                    .seconds = 0.125});
    CHECK(folder.read("m.jsonl") == // there before the file is closed
          R"({"batch":3,"updates_applied":2,"updates_skipped":1,"loss":2.25,"norm":1.5,"clip":0.5,"lr":0.001,)"
          R"("tokens_per_s":1000.0,"seconds":0.125})"
          "\n");
  }
  {
    MetricsFile metrics = MetricsFile::create(folder.file("m.jsonl"));
    metrics.update({.batch = 1, .loss_scale = 65536, .pending = true});
    CHECK(folder.read("m.jsonl") ==
          R"({"batch":1,"updates_applied":0,"updates_skipped":0,"loss":0.0,"norm":0.0,"clip":1.0,"lr":0.0,)"
          R"("tokens_per_s":0.0,"seconds":0.0,"loss_scale":65536.0,"pending":true})"
          "\n");
  }
  {
    MetricsFile metrics = MetricsFile::create(folder.file("m.jsonl"));
    metrics.evaluation({.batch = 3, .updates_applied = 2, .val_loss = 2.5});
    metrics.end({.updates_applied = 2,
                 .updates_skipped = 1,
                 .batches_seen = 3,
                 .loss = 2.25,
                 .val_loss = 2.5,
                 .state_hash = "00ff",
                 .seconds = 60,
                 .reason = "done"});
    metrics.end({.state_hash = "", .reason = "no update"});
    CHECK(folder.read("m.jsonl") == R"({"batch":3,"updates_applied":2,"val_loss":2.5})"
                                    "\n"
                                    R"({"event":"end","updates_applied":2,"updates_skipped":1,"batches_seen":3,)"
                                    R"("loss":2.25,"val_loss":2.5,"state_hash":"00ff","seconds":60.0,"reason":"done"})"
                                    "\n"
                                    R"({"event":"end","updates_applied":0,"updates_skipped":0,"batches_seen":0,)"
                                    R"("state_hash":"","seconds":0.0,"reason":"no update"})"
                                    "\n");
  }
}

TEST_CASE("numbers come back with the same bits, and what is not finite is null") {
  TemporaryFolder const folder;
  MetricsFile metrics = MetricsFile::create(folder.file("m.jsonl"));
  double const third = 1.0 / 3, tiny = 4.9e-324;
  metrics.update({.batch = 1, .loss = third, .norm = tiny, .lr = 1e22});
  metrics.update({.batch = 2, .loss = std::nan(""), .norm = std::numeric_limits<double>::infinity()});
  metrics.end({.loss = std::nan(""), .reason = "bad byte \xff"});

  std::istringstream in(folder.read("m.jsonl"));
  std::string line;
  std::getline(in, line);
  auto const first = nlohmann::json::parse(line);
  CHECK(first["loss"].get<double>() == third);
  CHECK(first["norm"].get<double>() == tiny);
  CHECK(first["lr"].get<double>() == 1e22);
  std::getline(in, line);
  auto const second = nlohmann::json::parse(line);
  CHECK(second["loss"].is_null());
  CHECK(second["norm"].is_null());
  std::getline(in, line);
  CHECK(nlohmann::json::parse(line)["loss"].is_null());
}

TEST_CASE("a new run begins a new file") {
  TemporaryFolder const folder;
  write_run(folder.file("m.jsonl"));
  MetricsFile::create(folder.file("m.jsonl")).update(update_of(1));
  CHECK(story(folder.read("m.jsonl")) == "u1 ");
}

TEST_CASE("the file of a resumed run reads as that of one run") {
  TemporaryFolder const folder;
  std::string const path = folder.file("m.jsonl");
  write_run(path);
  std::string const whole = folder.read("m.jsonl");
  REQUIRE(story(whole) == R"(u1 u2 e2 u3 u4 end"" )");

  SECTION("from the middle: later lines and the end go, the others keep their bytes") {
    MetricsFile metrics = MetricsFile::resume(path, {2});
    CHECK(story(folder.read("m.jsonl")) == "u1 u2 e2 ");
    metrics.update(update_of(3));
    metrics.update(update_of(4));
    metrics.end({.updates_applied = 4, .batches_seen = 4, .reason = "stopped"});
    CHECK(folder.read("m.jsonl") == whole);
  }
  SECTION("from the end: only the end goes") {
    MetricsFile::resume(path, {4}).update(update_of(5));
    CHECK(story(folder.read("m.jsonl")) == "u1 u2 e2 u3 u4 u5 ");
  }
  SECTION("from nothing: all go") {
    MetricsFile::resume(path, {0}).update(update_of(1));
    CHECK(story(folder.read("m.jsonl")) == "u1 ");
  }
  SECTION("a line torn by a kill goes, wherever it was cut") {
    std::size_t const last_update = whole.find("{\"event\"");
    for (std::size_t cut = last_update; cut > last_update - 20; --cut) {
      folder.write("m.jsonl", whole.substr(0, cut));
      MetricsFile::resume(path, {4}).update(update_of(5));
      CHECK(story(folder.read("m.jsonl")) == (cut == last_update ? "u1 u2 e2 u3 u4 u5 " : "u1 u2 e2 u3 u5 "));
    }
  }
  SECTION("lines that are no records go") {
    folder.write("m.jsonl", "{\"batch\":\"one\"}\n[1]\n\nnot json\n" + whole);
    MetricsFile::resume(path, {2}).update(update_of(3));
    CHECK(story(folder.read("m.jsonl")) == "u1 u2 e2 u3 ");
  }
  SECTION("a file that was lost is begun anew") {
    std::filesystem::remove(path);
    MetricsFile::resume(path, {2}).update(update_of(3));
    CHECK(story(folder.read("m.jsonl")) == "u3 ");
  }
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_CASE("a file that cannot be begun is an error with its name and the cause") {
  TemporaryFolder const folder;
  CHECK(contains(message_of<Error>([&] { MetricsFile::create(folder.file("no/m.jsonl")); }),
                 {"no/m.jsonl", "No such file", "; "}));
  CHECK(contains(message_of<Error>([&] { MetricsFile::create(folder.path()); }), {folder.path(), "directory"}));
  CHECK_FALSE(std::filesystem::exists(folder.path() + ".partial"));

  write_run(folder.file("m.jsonl"));
  std::string const before = folder.read("m.jsonl");
  FileSizeLimit const limit(0); // met like a full disk
  CHECK(contains(message_of<Error>([&] { MetricsFile::resume(folder.file("m.jsonl"), {1}); }),
                 {"m.jsonl", "too large", "; make room"}));
  CHECK(folder.read("m.jsonl") == before);
}

TEST_CASE("lines that cannot be written wait, and the file has whole lines meanwhile") { // CASES 29
  TemporaryFolder const folder;
  MetricsFile metrics = MetricsFile::create(folder.file("m.jsonl"));
  metrics.update(update_of(1));
  std::string const first = folder.read("m.jsonl");
  for (rlim_t const room : {0, 1, 100}) { // none, or not enough: the line is torn and taken back
    FileSizeLimit const limit(first.size() + room);
    metrics.update(update_of(static_cast<std::int64_t>(room) + 2));
    CHECK(metrics.mark().bytes > std::ssize(first)); // which fits none while lines are missing
    CHECK(folder.read("m.jsonl") == first);
  }
  metrics.evaluation({.batch = 102, .updates_applied = 102, .val_loss = 4});
  CHECK(story(folder.read("m.jsonl")) == "u1 u2 u3 u102 e102 ");
  auto const mark = metrics.mark();
  CHECK(mark.bytes == std::ssize(folder.read("m.jsonl")));
  CHECK(MetricsFile::resume(folder.file("m.jsonl"), {102, 102, mark}).ends_evaluated());
}

TEST_CASE("what waits moves with the file") {
  TemporaryFolder const folder;
  MetricsFile metrics = MetricsFile::create(folder.file("m.jsonl"));
  metrics.update(update_of(1));
  {
    FileSizeLimit const limit(0);
    metrics.update(update_of(2));
    std::filesystem::remove(folder.file("m.jsonl"));
    CHECK(metrics.keep_at(folder.file("m.jsonl")) == MetricsFile::Found::in_place); // it could not be
  }
  CHECK(metrics.keep_at(folder.file("m.jsonl")) == MetricsFile::Found::written_anew);
  metrics.update(update_of(3));
  CHECK(story(folder.read("m.jsonl")) == "u1 u2 u3 ");
}
