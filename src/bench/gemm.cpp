#include "bench/benchmarks.hpp"
#include "bench/peak.hpp"
#include "bench/products.hpp"

#include "comm/agree.hpp"
#include "config/compute_type.hpp"
#include "config/schema.hpp"
#include "core/error.hpp"
#include "kernels/gemm.hpp"
#include "model/families.hpp"

namespace kozero {

namespace {

/// Of all products that a token has part in, as often as the model has them.
struct Mix {
  double operations = 0;
  double seconds = 0;
};

BenchValue value_of(std::optional<double> const& figure, BenchValue (*show)(double)) {
  return figure ? show(*figure) : BenchValue{};
}

/// A row of the table; adds to the mix.
std::vector<BenchValue> measure(BenchInput const& input, ModelProduct const& kind, Product const& product,
                                ProductPass pass, ProductLimit const& limit, Mix& mix) {
  Lane const lane;
  auto const rounds = measure_rounds(
      input.ranks, input.pace, lane, [&] { product.run(lane, pass); }, limit.piece());
  RoundFigures const figures = figures_of(rounds);
  ProductSize const size = product.size(pass);
  double const operations = size.operations();
  double const times_a_token = static_cast<double>(kind.times) / static_cast<double>(product.rows());
  mix.operations += operations * times_a_token;
  mix.seconds += figures.work_s * times_a_token;
  auto const show_rate = [](double flops) { return bench_rate(flops, "FLOP/s"); };
  return {bench_words(kind.name),
          bench_words(name_of(pass)),
          bench_count(kind.times),
          bench_count(size.m),
          bench_count(size.n),
          bench_count(size.k),
          {.value = figures.work_s, .text = fmt::format("{:.3f}", figures.work_s * 1e3)},
          bench_share(figures.spread()),
          show_rate(operations / figures.work_s),
          value_of(limit.flops(figures), show_rate),
          value_of(limit.share(figures, operations), bench_share)};
}

} // namespace

BenchReport bench_gemm(BenchInput const& input) {
  Config const& config = input.config;
  DType const compute = dtype_of_compute(config.precision.compute);
  std::int64_t const rows = config.batch.micro * config.model.context;
  auto const architecture = architecture_of(config.model);
  auto const limit = on_all_ranks(input.ranks, [&] {
    return std::make_unique<ProductLimit>(compute, fp32_products(config.precision), input.ledger);
  });
  BenchTable table{.key = "rows",
                   .columns = {{"product", "product"},
                               {"pass", "pass"},
                               {"times", "times"},
                               {"m", "m"},
                               {"n", "n"},
                               {"k", "k"},
                               {"seconds", "ms"},
                               {"spread", "spread"},
                               {"flops_per_s", "FLOP/s"},
                               {"limit_flops_per_s", "peak"},
                               {"share", "share"}},
                   .rows = {}};
  Mix mix;
  auto const workspace = bench_workspace(input);
  for (auto const& kind : architecture->products()) {
    auto const product = on_all_ranks(input.ranks, [&] { return make_product(kind, rows, compute, input.ledger); });
    for (ProductPass const pass : product_passes) {
      table.rows.push_back(measure(input, kind, *product, pass, *limit, mix));
    }
  }
  BenchReport report{
      .benchmark = "gemm",
      .title = fmt::format("Matrix products of {}, {} tokens at once, {}", architecture->shape_text(), rows,
                           text_of(config, "precision.compute")),
      .facts = bench_facts(input.ranks),
      .tables = {std::move(table)},
      .notes = {"FLOP: 2·m·n·k. times: in a pass of the model; logits are made in chunks of rows. peak: " +
                    limit->describe() + ".",
                "Medians of rounds in which product and peak take turns; spread: slowest less fastest, "
                "of the median."},
      .warnings = {}};
  report.facts.push_back({"library", "library", bench_words(gemm_backend())});
  report.facts.push_back(
      {"flops_per_s", "all as the model has them", bench_rate(mix.operations / mix.seconds, "FLOP/s")});
  return report;
}

} // namespace kozero
