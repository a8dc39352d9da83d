#include "bench/benchmarks.hpp"

#include "comm/agree.hpp"
#include "config/compute_type.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/launch.hpp"
#include "model/families.hpp"

#include <map>

namespace kozero {

namespace {

/// Zeros, whose sums stay zeros however often they are made, and memory for a copy.
class Block {
public:
  Block(std::int64_t size, DType type, int ranks, Ledger& ledger)
      : partition_(size, ranks), type_(type),
        whole_(ledger, Category::workspace, "bench", bytes_of(partition_.capacity())),
        copied_(ledger, Category::workspace, "bench", bytes_of(partition_.capacity())) {}

  Span span() const { return {whole_.data(), partition_.capacity(), type_, Space::device}; }
  Partition const& partition() const { return partition_; }
  /// What a rank gets from others in an all_gather or a reduce_scatter.
  std::int64_t received_bytes() const {
    return bytes_of(partition_.size()) * (partition_.ranks() - 1) / partition_.ranks();
  }
  void copy_received(Lane const& lane) const { copy(lane, copied_.pointer(), whole_.pointer(), received_bytes()); }

private:
  std::int64_t bytes_of(std::int64_t elements) const { return elements * size_of(type_); }

  Partition partition_;
  DType type_;
  DeviceBuffer<unsigned char> whole_, copied_;
};

/// The first block of each size.
std::map<std::int64_t, std::string> sizes_of(ModelLayout const& layout) {
  std::map<std::int64_t, std::string> sizes;
  for (auto const& block : layout) sizes.try_emplace(block.size(), block.name());
  return sizes;
}

} // namespace

BenchReport bench_exchange(BenchInput const& input, Group const& group) {
  if (group.size() == 1) {
    throw SharedError("one rank exchanges nothing (there is nothing to measure); start several: mpiexec -n 2 kozero "
                      "bench exchange",
                      exit_bad_input);
  }
  Config const& config = input.config;
  auto const architecture = architecture_of(config.model);
  DType const compute = dtype_of_compute(config.precision.compute);
  DType const gradients = config.precision.gradients == GradientType::fp32 ? DType::f32 : compute;
  BenchTable table{.key = "rows",
                   .columns = {{"collective", "collective"},
                               {"block", "block"},
                               {"elements", "elements"},
                               {"bytes", "received"},
                               {"seconds", "ms"},
                               {"spread", "spread"},
                               {"bytes_per_s", "rate"},
                               {"limit_bytes_per_s", "copy"},
                               {"share", "share"}},
                   .rows = {}};
  Lane const lane;
  auto const add = [&](char const* name, std::string const& of, Block const& block, int times, auto const& start) {
    auto const rounds = measure_rounds(
        group.ranks, input.pace, lane, [&] { start(block).wait(lane); }, [&] { block.copy_received(lane); });
    RoundFigures const figures = figures_of(rounds);
    std::int64_t const bytes = times * block.received_bytes();
    table.rows.push_back({bench_words(name),
                          bench_words(of),
                          bench_count(block.partition().size()),
                          {.value = bytes, .text = format_bytes(bytes)},
                          {.value = figures.work_s, .text = fmt::format("{:.3f}", figures.work_s * 1e3)},
                          bench_share(figures.spread()),
                          bench_rate(static_cast<double>(bytes) / figures.work_s, "B/s"),
                          bench_rate(static_cast<double>(block.received_bytes()) / figures.limit_s, "B/s"),
                          bench_share(times * figures.ratio)});
  };
  Collectives& collectives = group.collectives;
  for (auto const& sized : sizes_of(architecture->layout())) {
    auto const& name = sized.second;
    auto const block = [&, size = sized.first](DType type) {
      return on_all_ranks(group.ranks, [&] { return std::make_unique<Block>(size, type, group.size(), input.ledger); });
    };
    {
      auto const sums = block(gradients);
      add("reduce_scatter", name, *sums, 1, [&](Block const& of) {
        return collectives.reduce_scatter(lane, of.span(), of.partition(), Traffic::gradients);
      });
      add("all_reduce", name, *sums, 2,
          [&](Block const& of) { return collectives.all_reduce(lane, of.span(), of.partition(), Traffic::gradients); });
    }
    auto const values = block(compute);
    add("all_gather", name, *values, 1,
        [&](Block const& of) { return collectives.all_gather(lane, of.span(), of.partition(), Traffic::parameters); });
  }
  return {.benchmark = "exchange",
          .title = fmt::format("Collectives of the blocks of {}", architecture->shape_text()),
          .facts = bench_facts(group.ranks),
          .tables = {std::move(table)},
          .notes = {"received: (N-1)/N of a block on each of N ranks, twice that in an all_reduce. copy: (N-1)/N "
                    "within device memory, in "
                    "turn with it.",
                    "A collective is waited for at once; in training it goes on beside computation. Rates are of the "
                    "slowest rank: what it received by the time, which nccl-tests call bus bandwidth."},
          .warnings = {}};
}

} // namespace kozero
