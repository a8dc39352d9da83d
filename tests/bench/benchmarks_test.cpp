// Every benchmark runs under the rules of the device, on one rank and on several, and gives back what it took.
#include "support/catch.hpp"
#include "support/training.hpp"

#include "bench/benchmarks.hpp"
#include "bench/step.hpp"

#include <cmath>

using namespace kozero;
using namespace kozero::test;

namespace {

double number(BenchTable const& table, std::size_t row, std::string const& key) {
  auto const column = std::ranges::find(table.columns, key, &BenchColumn::key) - table.columns.begin();
  return std::get<double>(table.rows.at(row).at(static_cast<std::size_t>(column)).value);
}

void check_seconds(BenchTable const& table) {
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    CHECK(number(table, row, "seconds") > 0);
    CHECK(std::isfinite(number(table, row, "spread")));
  }
}

void check_given_back(Ledger const& ledger) {
  for (Space const space : {Space::device, Space::host}) CHECK(ledger.bytes(space) == 0);
}

} // namespace

TEST_CASE_METHOD(RunFixture, "products, attention and the link are measured in every compute type") {
  for (auto const type : {ComputeType::fp32, ComputeType::bf16, ComputeType::fp16}) {
    CAPTURE(type);
    config.precision.compute = type;
    Ledger own;
    BenchInput const input{config, Pace::quick, world.ranks, own};
    for (auto const& [report, rows] : {std::pair(bench_gemm(input), 15), std::pair(bench_attention(input), 2)}) {
      INFO(report.benchmark);
      REQUIRE(report.tables.size() == 1);
      CHECK(std::ssize(report.tables[0].rows) == rows);
      check_seconds(report.tables[0]);
    }
    check_given_back(own);
  }
  Ledger own;
  BenchReport const link = bench_link({config, Pace::quick, world.ranks, own});
  REQUIRE(link.tables.size() == 2);
  for (auto const& table : link.tables) check_seconds(table);
  CHECK(link.tables[1].rows.size() == (runs_on_host<Lane> ? 1 : 2));
  check_given_back(own);
}

TEST_CASE_METHOD(RunFixture, "collectives are measured where there are several ranks, and refused for one") {
  Ledger own;
  BenchInput const input{config, Pace::quick, world.ranks, own};
  if (world.size() == 1) {
    CHECK_THROWS_AS(bench_exchange(input, world), SharedError);
    return;
  }
  BenchReport const report = bench_exchange(input, world);
  CHECK(report.tables.at(0).rows.size() == 3 * 3);
  check_seconds(report.tables[0]);
  check_given_back(own);
}

TEST_CASE_METHOD(RunFixture, "a step's parts add up, at any stage, with offload and delay, and all is given back") {
  config.batch.accumulate = 2;
  Corpus const corpus = open_corpus(config.data, config.model.vocabulary, config.model.context);
  for (std::int64_t const stage : {0, 2, 3}) {
    for (bool const delayed : {false, true}) {
      if (delayed && stage == 0) continue;
      CAPTURE(stage, delayed);
      config.zero.stage = stage;
      config.offload = {};
      if (delayed) config.offload = {.optimizer = OffloadTarget::host, .delayed_update = {100}};
      Ledger own;
      BenchReport const report = bench_step({.config = config,
                                             .corpus = corpus,
                                             .batch = batch_shape(config.batch, world.size()),
                                             .updates = 2,
                                             .pace = Pace::quick},
                                            world, own);
      auto const fact = [&](std::string const& key) {
        return std::get<double>(std::ranges::find(report.facts, key, &BenchFact::key)->value.value);
      };
      double sum = 0;
      BenchTable const& time = report.tables.at(0);
      for (std::size_t row = 0; row < time.rows.size(); ++row) sum += number(time, row, "seconds");
      CHECK(sum == Approx(fact("profiled_update_s")).epsilon(1e-9));
      CHECK(fact("share_of_products") > 0);
      CHECK(own.bytes(Space::device) == 0);
      CHECK(report.warnings.empty());
      // A delay is in effect though the deck's would begin later: the link has copies.
      CHECK((number(time, 2, "busy_seconds") > 0));
    }
  }
}
