#include "app/commands.hpp"

#include "config/units.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "io/bench_record.hpp"
#include "io/host_memory.hpp"
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
    throw InputError(fmt::format("--params {} does not fit (at {} bytes each, where {:.1f} GiB of host memory are "
                                 "available); ask for less than {}M",
                                 text, each, static_cast<double>(*available) / (1 << 30), *available / each / 1000000));
  }
  return parameters;
}

HostOffer host_offer() {
  return {.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
          .allowed = static_cast<int>(allowed_processors().count()),
          .target = host_target()};
}

void print_table(AdamBenchRecord const& record) {
  fmt::print("AdamW on the host: {} parameters, {}, threads {}\n\n", record.parameters, record.isa, record.threads);
  constexpr char const* line = "{:<8} {:<9} {:>7} {:>15} {:>12} {:>7} {:>11} {:>6}\n";
  fmt::print(line, "compute", "gradients", "threads", "bytes/parameter", "ns/parameter", "GB/s", "probe GB/s", "share");
  for (AdamBenchRecord::Row const& row : record.rows) {
    fmt::print(line, row.compute, row.gradients, row.threads, row.bytes_per_parameter,
               fmt::format("{:.3f}", row.ns_per_parameter), fmt::format("{:.1f}", row.gb_per_s),
               fmt::format("{:.1f}", row.probe_gb_per_s), fmt::format("{:.2f}", row.share));
  }
  fmt::print(
      "\nbytes: master, m and v in and out, the gradient in, the result in and out (a processor reads the line "
      "that it\nwrites a part of). The probe reads and writes three arrays of floats. Medians of rounds in which "
      "both take turns.\n");
}

} // namespace

int run_bench_adam(BenchAdamArguments const& arguments) {
  std::int64_t const parameters = parameters_of(arguments.params);
  Ledger ledger;
  std::vector<AdamBenchRow> const rows = bench_adam(parameters, ledger);

  AdamBenchRecord record{
      .parameters = parameters, .threads = static_cast<int>(HostExec().concurrency()), .isa = name_of(host_target())};
  for (AdamBenchRow const& row : rows) {
    record.rows.push_back({row.compute, row.gradients, row.threads, row.bytes_per_parameter, row.ns_per_parameter,
                           row.gb_per_s, row.probe_gb_per_s, row.share});
  }
  if (arguments.json) {
    fmt::print("{}", to_json(record));
  } else {
    print_table(record);
  }
  for (auto const& warning : adam_bench_warnings(rows, host_offer())) log::warn("warning: {}", warning);
  return exit_done;
}

} // namespace kozero
