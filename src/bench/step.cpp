#include "bench/step.hpp"

#include "bench/benchmarks.hpp"
#include "bench/peak.hpp"
#include "bench/products.hpp"
#include "comm/agree.hpp"
#include "config/compute_type.hpp"
#include "config/schema.hpp"
#include "core/device_name.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/profile.hpp"
#include "kernels/gemm.hpp"
#include "model/families.hpp"
#include "train/training.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace kozero {

namespace {

constexpr std::int64_t warm_up = 2; // updates: the first ones make what lasts
constexpr char const* window_name = "updates";

/// The deck's training, as far as updates go: nothing is saved beside them, no schedule ends, a delay begins at once.
TrainingSetup setup_of(StepBenchInput const& input) {
  TrainingSetup setup{.config = input.config,
                      .batch = input.batch,
                      .tokens = std::make_shared<CorpusTokens>(input.corpus, input.config.run.seed)};
  setup.config.run.updates = std::max(input.config.run.updates, std::numeric_limits<std::int64_t>::max() / 2);
  setup.config.checkpoint = {};
  if (setup.config.offload.delays()) setup.config.offload.delayed_update.start = 1;
  return setup;
}

/// The matrix products of one update of a rank, alone.
class ProductsOfUpdate {
public:
  ProductsOfUpdate(StepBenchInput const& input, Ranks& ranks) : ranks_(ranks) {
    Config const& config = input.config;
    auto const tokens = static_cast<double>(input.batch.micro * input.batch.accumulate * config.model.context);
    for (auto const& kind : architecture_of(config.model)->products()) {
      auto product = on_all_ranks(ranks, [&] {
        return make_product(kind, input.batch.micro * config.model.context, dtype_of_compute(config.precision.compute),
                            ledger_);
      });
      double const an_update = static_cast<double>(kind.times) * tokens / static_cast<double>(product->rows());
      for (ProductPass const pass : product_passes) {
        auto const work = [lane = Lane(), it = product.get(), pass] { it->run(lane, pass); };
        pieces_.push_back({work, times_a_round(ranks, input.pace, Lane(), work), an_update});
      }
      products_.push_back(std::move(product));
    }
  }

  double seconds() const {
    double sum = 0;
    for (auto const& [work, times, an_update] : pieces_) {
      ranks_.barrier();
      sum += an_update * seconds_of(Lane(), times, work) / static_cast<double>(times);
    }
    return sum;
  }

private:
  struct Piece {
    std::function<void()> work;
    std::int64_t times = 1;
    double an_update = 0; // how often it is there
  };
  Ledger ledger_; // the deck's limits are the training's
  Ranks& ranks_;
  std::vector<std::unique_ptr<Product>> products_;
  std::vector<Piece> pieces_;
};

/// Runs updates; all that was begun has ended when a call returns.
class Updates {
public:
  Updates(Training& training, Ranks& ranks) : training_(training), ranks_(ranks) {}

  void run(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) skipped_ += training_.step()->update.skipped ? 1 : 0;
    training_.settle();
    Lane().fence("rate");
  }
  /// Of one of so many.
  double seconds(std::int64_t count) {
    ranks_.barrier();
    return seconds_of(Lane(), 1, [&] { run(count); }) / static_cast<double>(count);
  }
  std::int64_t skipped() const { return skipped_; }

private:
  Training& training_;
  Ranks& ranks_;
  std::int64_t skipped_ = 0;
};

/// The window that was named so.
Interval window_of(std::span<Profile::Span const> spans) {
  auto const found =
      std::ranges::find_if(spans, [](auto const& span) { return std::string_view(span.what) == window_name; });
  KOZERO_REQUIRE(found != spans.end() && profile().dropped() == 0,
                 "a profile has no room for the updates of a round (it keeps {} spans); give fewer --updates",
                 profile_capacity);
  return {found->begin_ns, found->end_ns};
}

/// The parts of the rank that had most to do itself, on all ranks. Collective.
void share_parts(StepRounds& measured, Ranks& ranks) {
  auto const own = [&](Part part) { return measured.parts.taken_by(part); };
  auto const work = ranks.gather(own(Part::device) + own(Part::host) + own(Part::link));
  measured.rank = static_cast<int>(std::ranges::max_element(work) - work.begin());
  auto const of_that_rank = [&](std::int64_t& value) {
    value = ranks.gather(value)[static_cast<std::size_t>(measured.rank)];
  };
  of_that_rank(measured.profiled_ns);
  for (auto& value : measured.parts.taken) of_that_rank(value);
  for (auto& value : measured.parts.busy) of_that_rank(value);
}

/// A window of updates with a profile on: stamps cost a device time, so it is none of the rounds.
void profile_updates(StepRounds& measured, Updates& updates, std::int64_t count, Ranks& ranks) {
  ranks.barrier();
  profile().start(profile_capacity);
  {
    HostSpan const window(window_name);
    updates.run(count);
  }
  profile().stop();
  auto const spans = profile().spans();
  Interval const window = window_of(spans);
  measured.profiled = count;
  measured.profiled_ns = window.size();
  measured.parts = time_parts(spans, window, runs_on_host<Lane> ? LaneWork::by_host : LaneWork::beside_host);
  share_parts(measured, ranks);
}

StepRounds measure(StepBenchInput const& input, Group const& group, Ledger& ledger) {
  Ranks& ranks = group.ranks;
  auto const training = on_all_ranks(ranks, [&] { return make_training(setup_of(input), group, ledger); });
  training->initialise();
  ProductsOfUpdate const products(input, ranks);
  Updates updates(*training, ranks);
  updates.run(warm_up);
  StepRounds measured;
  for (int round = 0; round < 3; ++round) {
    double const alone_s = products.seconds();
    measured.rounds.push_back({.work_s = updates.seconds(input.updates), .limit_s = alone_s});
  }
  measured.rounds = slowest(ranks, std::move(measured.rounds));
  profile_updates(measured, updates, input.updates, ranks);
  measured.skipped = updates.skipped();
  return measured;
}

StepDemand demand_of(Architecture const& architecture, Config const& config, BatchShape const& batch) {
  double weights = 0;
  for (auto const& product : architecture.products()) {
    weights += static_cast<double>(product.times * product.inputs * product.outputs);
  }
  return {.batch_tokens = static_cast<double>(batch.global() * config.model.context),
          .ranks = batch.ranks,
          .model_flops = architecture.training_flops(Recompute::none),
          .product_flops = 6 * weights,
          .hardware_flops = architecture.training_flops(config.activations.recompute)};
}

/// How the model's operations are counted.
std::string formula_of(StepDemand const& demand) {
  return fmt::format("model FLOP of a token: {} = 6 x {} weights of products + {} of attention. A weight takes 2 "
                     "forward and\n4 backward; attention the same for its two products over the half of the pairs "
                     "that is not masked\n(PaLM, 2022, appendix B). What is recomputed counts as hardware's alone.",
                     format_count(demand.model_flops), format_count(demand.product_flops / 6),
                     format_count(demand.model_flops - demand.product_flops));
}

std::vector<BenchFact> facts_of(StepDemand const& demand, StepFigures const& figures,
                                PrecisionConfig const& precision) {
  auto const seconds = [](double s) { return BenchValue{.value = s, .text = fmt::format("{:.4g} s", s)}; };
  auto const flops = [](double rate) { return bench_rate(rate, "FLOP/s"); };
  std::vector<BenchFact> facts = {
      {"batch_tokens", "tokens an update", bench_count(std::llround(demand.batch_tokens))},
      {"update_s", "update", seconds(figures.update_s)},
      {"update_least_s", "  fastest round", seconds(figures.least_s)},
      {"update_most_s", "  slowest round", seconds(figures.most_s)},
      {"tokens_per_s",
       "tokens/s",
       {.value = figures.tokens_per_s, .text = fmt::format("{:.1f}", figures.tokens_per_s)}},
      {"flops_per_token",
       "model FLOP a token",
       {.value = demand.model_flops, .text = format_count(demand.model_flops)}},
      {"flops_per_s", "model FLOP/s a rank", flops(figures.flops_per_s)},
      {"hardware_flops_per_s", "  with recomputation", flops(figures.hardware_per_s)},
      {"products_flops_per_s", "products alone", flops(figures.products_per_s)},
      {"share_of_products", "share of that", bench_share(figures.share_of_products)}};
  auto const peak = runs_on_host<Lane>
                        ? std::nullopt
                        : known_peak(device_name(), dtype_of_compute(precision.compute), fp32_products(precision));
  // By name: nvcc 13.0 crashes where a choice between values of a class stands within braces.
  BenchValue const peak_flops = peak ? flops(peak->flops) : BenchValue{};
  BenchValue const share_of_peak = peak ? bench_share(figures.flops_per_s / peak->flops) : BenchValue{};
  facts.push_back({"peak_flops_per_s", "peak of the device", peak_flops});
  facts.push_back({"share_of_peak", "share of peak", share_of_peak});
  return facts;
}

} // namespace

StepFigures step_figures(StepDemand const& demand, std::span<Round const> rounds) {
  RoundFigures const figures = figures_of(rounds);
  double const rank_tokens = demand.batch_tokens / static_cast<double>(demand.ranks);
  return {.update_s = figures.work_s,
          .least_s = figures.least_s,
          .most_s = figures.most_s,
          .tokens_per_s = demand.batch_tokens / figures.work_s,
          .flops_per_s = rank_tokens * demand.model_flops / figures.work_s,
          .hardware_per_s = rank_tokens * demand.hardware_flops / figures.work_s,
          .products_per_s = rank_tokens * demand.product_flops / figures.limit_s,
          .share_of_products = figures.ratio * demand.model_flops / demand.product_flops};
}

BenchTable step_parts(StepRounds const& measured) {
  BenchTable table{.key = "time",
                   .columns = {{"part", "part"}, {"seconds", "ms"}, {"share", "share"}, {"busy_seconds", "busy ms"}},
                   .rows = {}};
  auto const an_update = [&](std::int64_t ns) {
    double const seconds = static_cast<double>(ns) * 1e-9 / static_cast<double>(measured.profiled);
    return BenchValue{.value = seconds, .text = fmt::format("{:.3f}", seconds * 1e3)};
  };
  auto const share = [&](std::int64_t ns) {
    return bench_share(static_cast<double>(ns) / static_cast<double>(measured.profiled_ns));
  };
  for (int i = 0; i < n_parts; ++i) {
    Part const part = static_cast<Part>(i);
    std::int64_t const taken = measured.parts.taken_by(part);
    table.rows.push_back(
        {bench_words(name_of(part)), an_update(taken), share(taken), an_update(measured.parts.busy_with(part))});
  }
  return table;
}

BenchReport bench_step(StepBenchInput const& input, Group const& group, Ledger& ledger) {
  Config const& config = input.config;
  auto const architecture = architecture_of(config.model);
  StepDemand const demand = demand_of(*architecture, config, input.batch);
  StepRounds const measured = measure(input, group, ledger);
  StepFigures const figures = step_figures(demand, measured.rounds);
  double const profiled_s = static_cast<double>(measured.profiled_ns) * 1e-9 / static_cast<double>(measured.profiled);
  BenchReport report{
      .benchmark = "step",
      .title = fmt::format("Updates of {}, {}, {} windows", architecture->shape_text(),
                           text_of(config, "precision.compute"), input.batch.global()),
      .facts = bench_facts(group.ranks),
      .tables = {step_parts(measured)},
      .notes =
          {formula_of(demand),
           fmt::format("products alone: those of the same shapes, in turn with the updates; {}.", gemm_backend()),
           fmt::format(
               "time: of an update of rank {}, of {} with a profile on that took {:.4g} s each. Each instant is one "
               "part's, the first one's in\nthis order that goes on; busy: also what is hidden behind "
               "another.",
               measured.rank, measured.profiled, profiled_s)},
      .warnings = {}};
  report.facts.push_back({"model", "model", bench_words(architecture->describe())});
  std::ranges::move(facts_of(demand, figures, config.precision), std::back_inserter(report.facts));
  report.facts.push_back({"profiled_update_s",
                          "update with a profile",
                          {.value = profiled_s, .text = fmt::format("{:.4g} s", profiled_s)}});
  if (measured.skipped > 0) {
    report.warnings.push_back(fmt::format("{} updates were skipped (their gradients were not finite), and took less "
                                          "time than others; lower precision.loss_scale.initial",
                                          measured.skipped));
  }
  return report;
}

} // namespace kozero
