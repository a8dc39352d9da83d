#include "support/catch.hpp"

#include "bench/report.hpp"
#include "core/format.hpp"
#include "io/json.hpp"

using namespace kozero;

namespace {

BenchReport example() {
  return {.benchmark = "example",
          .title = "An example",
          .facts = {{"ranks", "ranks", bench_count(2)}, {"peak", "peak of it", BenchValue{}}},
          .tables = {{.key = "rows",
                      .columns = {{"name", "name"}, {"bytes_per_s", "rate"}, {"share", "share"}},
                      .rows = {{bench_words("a"), bench_rate(53.4e9, "B/s"), bench_number(0.984, 2)},
                               {bench_words("longer"), bench_rate(9.996e11, "B/s"), BenchValue{}}}}},
          .notes = {"A note."},
          .warnings = {"slow"}};
}

} // namespace

TEST_CASE("text and JSON say the same, for people and for programs") {
  CHECK(text_of(example()) == "An example\n"
                              "\n"
                              "ranks       2\n"
                              "peak of it  -\n"
                              "\n"
                              "name         rate  share\n"
                              "a       53.4 GB/s   0.98\n"
                              "longer  1.00 TB/s      -\n"
                              "\n"
                              "A note.\n");
  Json const json = Json::parse(json_of(example()));
  CHECK(json.at("benchmark") == "example");
  CHECK(json.at("ranks") == 2);
  CHECK(json.at("peak").is_null());
  REQUIRE(json.at("rows").size() == 2);
  CHECK(json.at("rows")[0] == Json{{"name", "a"}, {"bytes_per_s", 53.4e9}, {"share", 0.984}});
  CHECK(json.at("rows")[1].at("share").is_null());
  CHECK(json.at("notes") == Json::array({"A note."}));
  CHECK(json.at("warnings") == Json::array({"slow"}));
}

TEST_CASE("rates have three digits and the steps of a thousand") {
  CHECK(format_rate(0, "B/s") == "0.00 B/s");
  CHECK(format_rate(9.994, "B/s") == "9.99 B/s");
  CHECK(format_rate(9.996, "B/s") == "10.0 B/s");
  CHECK(format_rate(99.96, "B/s") == "100 B/s");
  CHECK(format_rate(999.4e3, "B/s") == "999 kB/s");
  CHECK(format_rate(999.6e3, "B/s") == "1.00 MB/s");
  CHECK(format_rate(989.5e12, "FLOP/s") == "990 TFLOP/s");
  CHECK(format_rate(1.25e18, "FLOP/s") == "1250 PFLOP/s");
}
