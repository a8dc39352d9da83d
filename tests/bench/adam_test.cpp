#include "support/catch.hpp"

#include "bench/adam.hpp"
#include "comm/self_ranks.hpp"

#include <cmath>

using namespace kozero;

namespace {

AdamBenchRow slow_row(std::int64_t threads) {
  return {.compute = "bf16", .gradients = "fp32", .threads = threads, .share = 0.4};
}

std::string only_warning(AdamBenchRow const& row, HostOffer const& offer) {
  auto const warnings = adam_bench_warnings({row}, offer);
  REQUIRE(warnings.size() == 1);
  return warnings.front();
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// Not seconds. On a busy machine a step of one parameter may wait for a thread as long as for many.
void check_nanoseconds(double each) {
  CHECK(each > 1e-3);
  CHECK(each < 1e9);
}

std::vector<AdamBenchRow> measure(std::int64_t parameters, ColdRows cold, Ledger& ledger) {
  SelfRanks ranks;
  return measure_adam({.parameters = parameters, .cold = cold, .pace = Pace::quick, .ranks = ranks, .ledger = ledger});
}

} // namespace

TEST_CASE("a row holds the medians of its rounds, and of their shares") {
  // Of 1000 parameters at 28 bytes, beside a triad of 24: 28 GB/s of 48, 14 of 24, and a round that something
  // disturbed.
  std::vector<Round> const rounds = {{1e-6, 0.5e-6}, {2e-6, 1e-6}, {9e-6, 0.25e-6}};
  AdamBenchRow const row = adam_bench_row({.bytes_per_parameter = 28}, 1000, rounds);
  CHECK(row.ns_per_parameter == Approx(2));
  CHECK(row.gb_per_s == Approx(14));
  CHECK(row.triad_gb_per_s == Approx(48));
  CHECK(row.share == Approx(28.0 / 48));

  std::vector<Round> const cold = {{1e-9, 3e-9}, {2e-9, 4e-9}, {8e-9, 5e-9}};
  ColdRate const rate = cold_rate(cold);
  CHECK(rate.warm_ns_per_parameter == Approx(2));
  CHECK(rate.cold_ns_per_parameter == Approx(4));
  CHECK(rate.ratio == Approx(2));
}

TEST_CASE("every row is measured, and the memory goes back") {
  Ledger ledger;
  auto const rows = measure(30001, ColdRows::left_out, ledger);
  std::int64_t const threads = HostExec().concurrency();
  REQUIRE(rows.size() == 3 * ((threads > 1 ? 2u : 1u) + (runs_on_host<Lane> ? 0u : 1u)));
  for (AdamBenchRow const& row : rows) {
    CHECK(row.threads == (row.memory == Space::device ? 0 : row.threads > 1 ? threads : 1));
    check_nanoseconds(row.ns_per_parameter);
    CHECK(std::abs(row.gb_per_s * row.ns_per_parameter / static_cast<double>(row.bytes_per_parameter) - 1) < 1e-12);
    CHECK(row.triad_gb_per_s > 1e-3);
    CHECK(row.triad_gb_per_s < 1e6);
    CHECK(row.share > 0);
    CHECK(!row.cold);
  }
  CHECK(rows.front().compute == "bf16");
  CHECK(rows.front().gradients == "bf16");
  CHECK(rows.front().memory == Space::host);
  CHECK(rows.front().bytes_per_parameter == 3 * 8 + 2 + 2 * 2);
  CHECK(rows.back().compute == "fp32");
  CHECK(rows.back().memory == (runs_on_host<Lane> ? Space::host : Space::device));
  CHECK(rows.back().bytes_per_parameter == 3 * 8 + 4); // the master is the parameter
  for (Space const space : {Space::host, Space::device}) CHECK(ledger.bytes(space) == 0);
  CHECK(ledger.peak_bytes(Space::host) == 30001 * adam_bench_bytes_per_parameter);
}

TEST_CASE("cold rows stand beside warm ones when they are asked for, and take no more memory") {
  Ledger ledger;
  for (AdamBenchRow const& row : measure(3001, ColdRows::measured, ledger)) {
    REQUIRE(row.cold);
    check_nanoseconds(row.cold->warm_ns_per_parameter);
    check_nanoseconds(row.cold->cold_ns_per_parameter);
    CHECK(row.cold->ratio > 0);
  }
  CHECK(ledger.bytes(Space::host) == 0);
  CHECK(ledger.peak_bytes(Space::host) == 3001 * adam_bench_bytes_per_parameter);
}

TEST_CASE("a rate below half of the triad's is a warning with its likeliest cause") {
  HostOffer const usual{.processors = 8, .allowed = 8, .target = HostTarget::avx2};
  CHECK(adam_bench_warnings({}, usual).empty());
  CHECK(adam_bench_warnings({{.threads = 8, .share = 0.5}}, usual).empty());
  CHECK(adam_bench_warnings({{.memory = Space::device, .threads = 0, .share = 0.1}}, usual).empty());
  CHECK(contains(only_warning(slow_row(8), usual), "bf16 with gradients of fp32 and 8 threads reaches 0.40"));
  CHECK(contains(only_warning(slow_row(8), usual), "other programs"));
  CHECK(contains(only_warning(slow_row(8), {8, 2, HostTarget::avx2}), "8 threads run on 2 processors"));
  CHECK(contains(only_warning(slow_row(1), {8, 1, HostTarget::avx2}), "1 of 8 processors"));
  CHECK(contains(only_warning(slow_row(1), {1, 1, HostTarget::avx2}), "other programs"));
#ifdef KOZERO_HOST_TARGETS
  CHECK(contains(only_warning(slow_row(8), {8, 8, HostTarget::baseline}), "no AVX2"));
#endif
}

TEST_CASE("the quick measurement gives a time for every type, also of one parameter") {
  for (std::int64_t const parameters : {std::int64_t{1}, std::int64_t{5000}, std::int64_t{1} << 40}) {
    check_nanoseconds(measure_host_adam_ns_per_parameter(parameters, DType::bf16, DType::bf16));
  }
  check_nanoseconds(measure_host_adam_ns_per_parameter(5000, DType::bf16, DType::f32));
  check_nanoseconds(measure_host_adam_ns_per_parameter(5000, DType::f32, DType::f32));
  CHECK_THROWS_AS(measure_host_adam_ns_per_parameter(5000, DType::i64, DType::f32), Error);
}
