#include "support/catch.hpp"

#include "bench/step.hpp"

using namespace kozero;

TEST_CASE("the figures of a step are those of its rounds") {
  StepDemand const demand{
      .batch_tokens = 4096, .ranks = 2, .model_flops = 1.2e9, .product_flops = 1e9, .hardware_flops = 1.5e9};
  // Seconds of an update, and of its products alone, of one rank; the last round was disturbed.
  std::vector<Round> const rounds = {{4, 2}, {5, 2}, {20, 12}};
  StepFigures const figures = step_figures(demand, rounds);
  CHECK(figures.update_s == 5);
  CHECK(figures.least_s == 4);
  CHECK(figures.most_s == 20);
  CHECK(figures.tokens_per_s == Approx(4096 / 5.0));
  CHECK(figures.flops_per_s == Approx(2048 * 1.2e9 / 5));
  CHECK(figures.hardware_per_s == Approx(2048 * 1.5e9 / 5));
  CHECK(figures.products_per_s == Approx(2048 * 1e9 / 2));
  CHECK(figures.share_of_products == Approx(0.5 * 1.2)); // of the ratios 0.5, 0.4, 0.6
}

TEST_CASE("the parts of an update add up to it") {
  StepRounds const measured{.rounds = {},
                            .parts = {.taken = {500, 250, 125, 100, 25}, .busy = {500, 400, 300, 600, 25}},
                            .profiled = 4,
                            .profiled_ns = 1000,
                            .rank = 0,
                            .skipped = 0};
  BenchTable const table = step_parts(measured);
  REQUIRE(table.rows.size() == n_parts);
  double sum = 0;
  for (auto const& row : table.rows) sum += std::get<double>(row.at(1).value);
  CHECK(sum == Approx(1000e-9 / 4));
  CHECK(table.rows[0][0].text == "device");
  CHECK(table.rows[0][2].text == "50.0 %");
  CHECK(std::get<double>(table.rows[3][3].value) == Approx(150e-9));
  CHECK(table.rows[4][0].text == "idle");
}
