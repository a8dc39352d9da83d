#include "app/commands.hpp"

#include "config/units.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "io/host_memory.hpp"
#include "io/json.hpp"
#include "optim/adam_bench.hpp"

#include <unistd.h>

namespace kozero {

namespace {

/// The number that --params asks for, if memory has room for so many.
std::int64_t parameters_of(std::string const& text) {
  Parsed<std::int64_t> const parsed = parse_integer(text);
  if (!parsed.value) throw InputError(fmt::format("--params '{}' {}", text, parsed.fault));
  std::int64_t const parameters = *parsed.value;
  if (parameters < 1) {
    throw InputError(
        fmt::format("--params is {} (there is nothing to measure); give 1 or more, best 100M or more", parameters));
  }
  std::optional<std::int64_t> const available = available_host_memory();
  constexpr std::int64_t each = adam_bench_bytes_per_parameter;
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

/// What one run of the benchmark is about.
struct Setting {
  std::int64_t parameters = 0;
  int threads = 1;
  std::string isa = {};
};

void print_table(Setting const& setting, std::vector<AdamBenchRow> const& rows) {
  fmt::print("AdamW on the host: {} parameters, {}, threads {}\n\n", setting.parameters, setting.isa, setting.threads);
  constexpr char const* line = "{:<8} {:<9} {:>7} {:>15} {:>12} {:>7} {:>11} {:>6}\n";
  fmt::print(line, "compute", "gradients", "threads", "bytes/parameter", "ns/parameter", "GB/s", "probe GB/s", "share");
  for (AdamBenchRow const& row : rows) {
    fmt::print(line, row.compute, row.gradients, row.threads, row.bytes_per_parameter,
               fmt::format("{:.3f}", row.ns_per_parameter), fmt::format("{:.1f}", row.gb_per_s),
               fmt::format("{:.1f}", row.probe_gb_per_s), fmt::format("{:.2f}", row.share));
  }
  fmt::print(
      "\nbytes: master, m and v in and out, the gradient in, a 16-bit result in and out (a processor reads the line "
      "that\nit writes a part of). The probe reads and writes three arrays of floats. Medians of rounds in which "
      "both take turns.\n");
}

void print_cold_table(std::vector<AdamBenchRow> const& rows) {
  constexpr char const* line = "{:<8} {:<9} {:>7} {:>17} {:>17} {:>6}\n";
  fmt::print("\nRows without a gradient, whose moments decay through the least normal number\n\n");
  fmt::print(line, "compute", "gradients", "threads", "warm ns/parameter", "cold ns/parameter", "ratio");
  for (AdamBenchRow const& row : rows) {
    fmt::print(line, row.compute, row.gradients, row.threads, fmt::format("{:.3f}", row.cold->warm_ns_per_parameter),
               fmt::format("{:.3f}", row.cold->cold_ns_per_parameter), fmt::format("{:.2f}", row.cold->ratio));
  }
}

Json json_of(AdamBenchRow const& row) {
  Json object = {{"compute", row.compute},
                 {"gradients", row.gradients},
                 {"threads", row.threads},
                 {"bytes_per_parameter", row.bytes_per_parameter},
                 {"ns_per_parameter", row.ns_per_parameter},
                 {"gb_per_s", row.gb_per_s},
                 {"probe_gb_per_s", row.probe_gb_per_s},
                 {"share", row.share}};
  if (row.cold) {
    object["cold"] = {{"warm_ns_per_parameter", row.cold->warm_ns_per_parameter},
                      {"cold_ns_per_parameter", row.cold->cold_ns_per_parameter},
                      {"ratio", row.cold->ratio}};
  }
  return object;
}

void print_json(Setting const& setting, std::vector<AdamBenchRow> const& rows) {
  Json object = {{"parameters", setting.parameters}, {"threads", setting.threads}, {"isa", setting.isa}};
  for (AdamBenchRow const& row : rows) object["rows"].push_back(json_of(row));
  fmt::print("{}\n", object.dump(2));
}

} // namespace

int run_bench_adam(BenchAdamArguments const& arguments) {
  Setting const setting{.parameters = parameters_of(arguments.params),
                        .threads = static_cast<int>(HostExec().concurrency()),
                        .isa = name_of(host_target())};
  Ledger ledger;
  auto const rows = bench_adam(setting.parameters, arguments.cold ? ColdRows::measured : ColdRows::left_out, ledger);
  if (arguments.json) {
    print_json(setting, rows);
  } else {
    print_table(setting, rows);
    if (arguments.cold) print_cold_table(rows);
  }
  for (auto const& warning : adam_bench_warnings(rows, host_offer())) log::warn("warning: {}", warning);
  return exit_done;
}

} // namespace kozero
