#include "bench/adam.hpp"

#include "bench/adam_arrays.hpp"
#include "bench/benchmarks.hpp"
#include "comm/agree.hpp"

#include <algorithm>

namespace kozero {

namespace {

constexpr std::int64_t cold_limit = 16 << 20; // parameters that are measured cold: too many for caches
constexpr std::int64_t cold_updates = 32;     // that a cold row lives
constexpr int cold_rounds = 3;

/// A type in the deck's words.
std::string word_of(DType type) { return type == DType::f32 ? "fp32" : name_of(type); }

enum class Threads { all, one };

/// The rounds of one kind of step.
template <class Arrays, class Step, class Triad>
AdamBenchRow measure(AdamBenchInput const& input, AdamBenchRow kind, Arrays const& arrays, Step const& step,
                     Triad const& triad) {
  kind.bytes_per_parameter = arrays.bytes_per_parameter();
  AdamBenchRow row =
      adam_bench_row(kind, arrays.count(),
                     measure_rounds(
                         input.ranks, input.pace, Lane(), [&] { step(arrays.count()); }, [&] { triad(); }));
  if (input.cold == ColdRows::left_out) return row;

  // Warm and cold take turns too.
  std::int64_t const count = std::min(arrays.count(), cold_limit);
  auto const seconds_a_parameter = [&](Moments moments) {
    arrays.fill(moments, count);
    Lane().fence("rate");
    input.ranks.barrier();
    return seconds_of(Lane(), cold_updates, [&] { step(count); }) / static_cast<double>(cold_updates * count);
  };
  std::vector<Round> rounds;
  for (int round = 0; round < cold_rounds; ++round) {
    double const warm_s = seconds_a_parameter(Moments::warm);
    rounds.push_back({.work_s = warm_s, .limit_s = seconds_a_parameter(Moments::cold)});
  }
  arrays.fill(Moments::warm, count);
  row.cold = cold_rate(rounds);
  return row;
}

template <class T, class G>
AdamBenchRow kind_of(Space memory, std::int64_t threads) {
  return {.memory = memory, .compute = word_of(dtype_of<T>), .gradients = word_of(dtype_of<G>), .threads = threads};
}

template <class T, class G>
void add_rows(std::vector<AdamBenchRow>& rows, AdamResult result, AdamBenchInput const& input) {
  auto const make = [&]<class AnyLane>(AnyLane) {
    return on_all_ranks(input.ranks, [&] {
      return std::make_unique<AdamArrays<T, G, AnyLane>>(input.parameters, result, input.ledger);
    });
  };
  {
    auto const arrays = make(HostLane());
    std::int64_t const threads = HostExec().concurrency();
    rows.push_back(measure(
        input, kind_of<T, G>(Space::host, threads), *arrays, [&](std::int64_t count) { arrays->step(count); },
        [&] { arrays->triad(); }));
    if (threads > 1) {
      rows.push_back(measure(
          input, kind_of<T, G>(Space::host, 1), *arrays,
          [&](std::int64_t count) { arrays->step_by_this_thread(count); }, [&] { arrays->triad_by_this_thread(); }));
    }
  }
  if constexpr (!runs_on_host<Lane>) {
    auto const arrays = make(Lane());
    rows.push_back(measure(
        input, kind_of<T, G>(Space::device, 0), *arrays, [&](std::int64_t count) { arrays->step(count); },
        [&] { arrays->triad(); }));
  }
}

template <class T, class G>
double quick_ns(std::int64_t count) {
  Ledger own;
  AdamArrays<T, G, HostLane> const arrays(count, AdamResult::apart, own); // as offload has it
  std::vector<double> steps;
  for (int i = 0; i < 3; ++i) steps.push_back(seconds_of(Lane(), 1, [&] { arrays.step(count); }));
  return std::ranges::min(steps) / static_cast<double>(count) * 1e9; // others may be at work now
}

BenchTable table_of(std::vector<AdamBenchRow> const& rows, ColdRows cold) {
  BenchTable table{.key = "rows",
                   .columns = {{"compute", "compute"},
                               {"gradients", "gradients"},
                               {"memory", "memory"},
                               {"threads", "threads"},
                               {"bytes_per_parameter", "bytes/parameter"},
                               {"ns_per_parameter", "ns/parameter"},
                               {"gb_per_s", "GB/s"},
                               {"triad_gb_per_s", "triad GB/s"},
                               {"share", "share"}},
                   .rows = {}};
  if (cold == ColdRows::measured) {
    table.columns.insert(table.columns.end(), {{"warm_ns_per_parameter", "warm ns/parameter"},
                                               {"cold_ns_per_parameter", "cold ns/parameter"},
                                               {"cold_ratio", "ratio"}});
  }
  for (auto const& row : rows) {
    auto& values = table.rows.emplace_back();
    // By name: nvcc 13.0 crashes where a choice between values of a class stands within braces.
    BenchValue const threads = row.threads > 0 ? bench_count(row.threads) : BenchValue{};
    values = {bench_words(row.compute),
              bench_words(row.gradients),
              bench_words(name_of(row.memory)),
              threads,
              bench_count(row.bytes_per_parameter),
              bench_number(row.ns_per_parameter, 3),
              bench_number(row.gb_per_s, 1),
              bench_number(row.triad_gb_per_s, 1),
              bench_number(row.share, 2)};
    if (!row.cold) continue;
    values.insert(values.end(), {bench_number(row.cold->warm_ns_per_parameter, 3),
                                 bench_number(row.cold->cold_ns_per_parameter, 3), bench_number(row.cold->ratio, 2)});
  }
  return table;
}

} // namespace

AdamBenchRow adam_bench_row(AdamBenchRow kind, std::int64_t parameters, std::span<Round const> rounds) {
  auto const count = static_cast<double>(parameters);
  auto const bytes = static_cast<double>(kind.bytes_per_parameter);
  RoundFigures const figures = figures_of(rounds);
  kind.ns_per_parameter = figures.work_s / count * 1e9;
  kind.gb_per_s = bytes / kind.ns_per_parameter;
  kind.triad_gb_per_s = triad_bytes * count / figures.limit_s * 1e-9;
  kind.share = bytes / triad_bytes * figures.ratio;
  return kind;
}

ColdRate cold_rate(std::span<Round const> rounds) {
  RoundFigures const figures = figures_of(rounds);
  return {.warm_ns_per_parameter = figures.work_s * 1e9,
          .cold_ns_per_parameter = figures.limit_s * 1e9,
          .ratio = figures.ratio};
}

std::vector<AdamBenchRow> measure_adam(AdamBenchInput const& input) {
  std::vector<AdamBenchRow> rows;
  add_rows<bf16, bf16>(rows, AdamResult::apart, input);
  add_rows<bf16, float>(rows, AdamResult::apart, input);
  add_rows<float, float>(rows, AdamResult::in_master, input);
  return rows;
}

std::vector<std::string> adam_bench_warnings(std::vector<AdamBenchRow> const& rows, HostOffer const& offer) {
  std::vector<std::string> warnings;
  for (AdamBenchRow const& row : rows) {
    if (row.share >= 0.5 || row.memory != Space::host) continue;
    std::string cause = "other programs on this host, or memory of another socket; stop them, or bind ranks to sockets";
    if (row.threads > offer.allowed) {
      cause = fmt::format("{} threads run on {} processors; set OMP_NUM_THREADS to those, or leave it unset",
                          row.threads, offer.allowed);
    } else if (offer.target == HostTarget::baseline) {
      cause = "this processor has no AVX2 and FMA; offload to a newer host";
    } else if (offer.allowed == 1 && offer.processors > 1) {
      cause = fmt::format("this process may run on 1 of {} processors; widen the launcher's binding, or the job's "
                          "cores a rank",
                          offer.processors);
    }
    warnings.push_back(fmt::format("AdamW of {} with gradients of {} and {} threads reaches {:.2f} of what memory "
                                   "gives ({})",
                                   row.compute, row.gradients, row.threads, row.share, cause));
  }
  return warnings;
}

BenchReport bench_adam(AdamBenchInput const& input, HostOffer const& offer) {
  auto const rows = measure_adam(input);
  BenchReport report{.benchmark = "adam",
                     .title = fmt::format("AdamW: {} parameters", input.parameters),
                     .facts = bench_facts(input.ranks),
                     .tables = {table_of(rows, input.cold)},
                     .notes = {"bytes: master, m and v in and out, the gradient in, a 16-bit result in and out (a "
                               "processor reads the line that\nit writes a part of). triad: three arrays of floats on "
                               "the same memory, read and written. Medians of rounds in\nwhich both take turns."},
                     .warnings = adam_bench_warnings(rows, offer)};
  report.facts.push_back({"isa", "host loops", bench_words(name_of(host_target()))});
  report.facts.push_back({"parameters", "parameters", bench_count(input.parameters)});
  if (input.cold == ColdRows::measured) {
    report.notes.emplace_back("cold: rows without a gradient, whose moments decay through the least normal number.");
  }
  return report;
}

double measure_host_adam_ns_per_parameter(std::int64_t parameters, DType compute, DType gradients) {
  // Few enough to be quick, enough not to fit the caches of the threads that share them.
  std::int64_t const threads = HostExec().concurrency();
  std::int64_t const count = std::min(parameters, std::clamp<std::int64_t>(threads << 20, 2 << 20, 16 << 20));
  return with_float_type(
      compute, [&]<class T>(T) { return gradients == DType::f32 ? quick_ns<T, float>(count) : quick_ns<T, T>(count); });
}

} // namespace kozero
