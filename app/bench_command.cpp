#include "app/commands.hpp"

#include "app/job.hpp"
#include "bench/adam.hpp"
#include "bench/benchmarks.hpp"
#include "bench/step.hpp"
#include "comm/agree.hpp"
#include "comm/process_grid.hpp"
#include "comm/survey.hpp"
#include "comm/transport.hpp"
#include "config/model_family.hpp"
#include "config/units.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "io/host_memory.hpp"

#include <unistd.h>

#include <algorithm>

namespace kozero {

namespace {

/// Rank 0 prints; the others have nothing to say.
int print(BenchReport const& report, BenchArguments const& arguments, Ranks const& ranks) {
  if (ranks.rank() != 0) return exit_done;
  fmt::print("{}", arguments.json ? json_of(report) : text_of(report));
  for (auto const& warning : report.warnings) log::warn("warning: {}", warning);
  return exit_done;
}

Pace pace_of(BenchArguments const& arguments) { return arguments.quick ? Pace::quick : Pace::usual; }

/// What is measured where no deck is named: the first published size of the first family, in windows of 1024 tokens; as
/// many at once as make a device busy.
std::string usual_deck() {
  return fmt::format("model: {{size: {}}}\nbatch: {{micro: {}}}\ndata: {{train: none}}\n",
                     model_families().front()->sizes().front().name, KOZERO_HAS_ACCELERATOR ? 8 : 1);
}

Deck deck_of(BenchArguments const& arguments, Ranks& ranks) {
  if (!arguments.deck.empty()) return read_deck_of_job(arguments.deck, arguments.overrides, ranks);
  return on_all_ranks(ranks, [&] { return read_deck(usual_deck(), "--deck", arguments.overrides); });
}

/// Runs a benchmark of a deck's shapes on all ranks.
template <class Bench>
int run_with_shapes(BenchArguments const& arguments, Bench const& bench) {
  Ledger ledger;
  auto const ranks = make_world_ranks();
  Deck const deck = deck_of(arguments, *ranks);
  return print(bench(BenchInput{deck.config, pace_of(arguments), *ranks, ledger}), arguments, *ranks);
}

/// The number that --params asks for, if memory has room for so many on each of `ranks` ranks of this host.
std::int64_t parameters_of(std::string const& text, std::int64_t ranks) {
  Parsed<std::int64_t> const parsed = parse_integer(text);
  if (!parsed.value) throw InputError(fmt::format("--params '{}' {}", text, parsed.fault));
  std::int64_t const parameters = *parsed.value;
  if (parameters < 1) {
    throw InputError(
        fmt::format("--params is {} (there is nothing to measure); give 1 or more, best 100M or more", parameters));
  }
  std::optional<std::int64_t> const available = available_host_memory();
  std::int64_t const each = adam_bench_bytes_per_parameter * ranks;
  if (available && parameters > *available / each) {
    throw InputError(fmt::format("--params {} does not fit (at {} bytes each, where {} of host memory are available); "
                                 "ask for less than {}M",
                                 text, each, format_bytes(*available), *available / each / 1000000));
  }
  return parameters;
}

HostOffer host_offer() {
  return {.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
          .allowed = static_cast<int>(allowed_processors().count()),
          .target = host_target()};
}

} // namespace

int run_bench_gemm(BenchArguments const& arguments) { return run_with_shapes(arguments, bench_gemm); }

int run_bench_attention(BenchArguments const& arguments) { return run_with_shapes(arguments, bench_attention); }

int run_bench_exchange(BenchArguments const& arguments) {
  return run_with_shapes(arguments, [](BenchInput const& input) {
    ProcessGrid const grid(input.ranks, input.config.parallel, input.ledger);
    BenchReport report = bench_exchange(input, grid.world());
    std::string const way = choose_transport(input.ranks, input.config.parallel).text;
    report.facts.push_back({"exchange", "exchange", bench_words(way)});
    return report;
  });
}

int run_bench_link(BenchArguments const& arguments) {
  Ledger ledger;
  auto const ranks = make_world_ranks();
  Config const config;
  return print(bench_link({config, pace_of(arguments), *ranks, ledger}), arguments, *ranks);
}

int run_bench_adam(BenchArguments const& arguments) {
  Ledger ledger;
  auto const ranks = make_world_ranks();
  std::vector<std::string> const hosts = ranks->gather(host_name());
  auto const neighbours = std::ranges::count(hosts, host_name());
  std::int64_t const parameters = on_all_ranks(*ranks, [&] { return parameters_of(arguments.params, neighbours); });
  AdamBenchInput const input{.parameters = parameters,
                             .cold = arguments.cold ? ColdRows::measured : ColdRows::left_out,
                             .pace = pace_of(arguments),
                             .ranks = *ranks,
                             .ledger = ledger};
  return print(bench_adam(input, host_offer()), arguments, *ranks);
}

int run_bench_step(BenchArguments const& arguments) {
  Ledger ledger;
  auto const ranks = make_world_ranks();
  Job const job = open_job(read_deck_of_job(arguments.deck, arguments.overrides, *ranks), *ranks, ledger);
  for (auto const& warning : job.deck.warnings) log::warn("warning: {}", warning);
  Config const& config = job.deck.config;
  ProcessGrid const grid(*ranks, config.parallel, ledger);
  StepBenchInput const input{.config = config,
                             .corpus = job.corpus,
                             .batch = job.batch,
                             .updates = arguments.updates,
                             .pace = pace_of(arguments)};
  return print(bench_step(input, grid.state(), ledger), arguments, *ranks);
}

} // namespace kozero
