#include "bench/benchmarks.hpp"
#include "bench/triad.hpp"
#include "comm/agree.hpp"
#include "core/error.hpp"
#include "core/event.hpp"
#include "core/format.hpp"
#include "core/launch.hpp"

#include <array>
#include <cstring>

namespace kozero {

namespace {

/// Memory of all kinds, and a lane for each direction.
class Memories {
public:
  Memories(std::int64_t bytes, Ledger& ledger)
      : device_(ledger, Category::workspace, "bench", bytes / 4),
        also_device_(ledger, Category::workspace, "bench", bytes / 4),
        pinned_(ledger, Category::workspace, "bench", bytes / 4),
        also_pinned_(ledger, Category::workspace, "bench", bytes / 4),
        host_(ledger, Category::workspace, "bench", bytes / 4),
        also_host_(ledger, Category::workspace, "bench", bytes / 4) {}

  std::int64_t bytes() const { return host_.size() * 4; }

  void pinned_up(Lane const& lane) const { up(lane); }
  void pinned_down(Lane const& lane) const { down(lane); }
  void pinned_both_ways(Lane const& lane) const {
    up(lane);
    down(lane);
  }
  void pageable_up(Lane const& lane) const { copy(lane, device_.pointer(), host_.pointer(), host_.size()); }
  void pageable_down(Lane const& lane) const { copy(lane, host_.pointer(), device_.pointer(), host_.size()); }
  void within_host() const { std::memcpy(also_host_.data(), host_.data(), static_cast<std::size_t>(bytes())); }

private:
  void up(Lane const& lane) const {
    copy(up_, device_.pointer(), pinned_.pointer(), pinned_.size());
    order_after(lane, up_);
  }
  void down(Lane const& lane) const {
    copy(down_, also_pinned_.pointer(), also_device_.pointer(), pinned_.size());
    order_after(lane, down_);
  }

  DeviceBuffer<float> device_, also_device_;
  PinnedBuffer<float> pinned_, also_pinned_;
  HostBuffer<float> host_, also_host_;
  LazyLane up_{"up"}, down_{"down"};
};

BenchValue milliseconds(double seconds) { return {.value = seconds, .text = fmt::format("{:.3f}", seconds * 1e3)}; }

void add_copies(BenchTable& table, BenchInput const& input, Memories const& memories) {
  Lane const lane;
  struct Way {
    char const* name;
    void (Memories::*copies)(Lane const&) const;
    int directions;
  };
  for (auto const& [name, copies, directions] :
       {Way{"pinned, up", &Memories::pinned_up, 1}, Way{"pinned, down", &Memories::pinned_down, 1},
        Way{"pinned, both ways", &Memories::pinned_both_ways, 2}, Way{"pageable, up", &Memories::pageable_up, 1},
        Way{"pageable, down", &Memories::pageable_down, 1}}) {
    auto const rounds = measure_rounds(
        input.ranks, input.pace, lane, [&, copies = copies] { (memories.*copies)(lane); },
        [&] { memories.within_host(); });
    RoundFigures const figures = figures_of(rounds);
    auto const bytes = static_cast<double>(memories.bytes());
    table.rows.push_back({bench_words(name),
                          {.value = directions * memories.bytes(), .text = format_bytes(directions * memories.bytes())},
                          milliseconds(figures.work_s),
                          bench_share(figures.spread()),
                          bench_rate(directions * bytes / figures.work_s, "B/s"),
                          bench_rate(bytes / figures.limit_s, "B/s"),
                          bench_share(directions * figures.ratio)});
  }
}

template <class Memory, class AnyLane>
void add_memory(BenchTable& table, char const* name, BenchInput const& input, std::int64_t count,
                AnyLane const& its_lane) {
  using Array = Buffer<float, Memory>;
  auto const arrays = on_all_ranks(input.ranks, [&] {
    auto const array = [&] { return Array(input.ledger, Category::workspace, "bench", count); };
    return std::array<Array, 3>{array(), array(), array()};
  });
  RoundFigures const figures = figures_of(measure_rounds(input.ranks, input.pace, Lane(), [&] {
    run_triad(its_lane, arrays[0].data(), arrays[1].data(), arrays[2].data(), count);
  }));
  table.rows.push_back({bench_words(name),
                        {.value = count * triad_bytes, .text = format_bytes(count * triad_bytes)},
                        milliseconds(figures.work_s),
                        bench_share(figures.spread()),
                        bench_rate(static_cast<double>(count * triad_bytes) / figures.work_s, "B/s")});
}

} // namespace

BenchReport bench_link(BenchInput const& input) {
  bool const quick = input.pace == Pace::quick;
  BenchTable copies{.key = "rows",
                    .columns = {{"copy", "copy"},
                                {"bytes", "bytes"},
                                {"seconds", "ms"},
                                {"spread", "spread"},
                                {"bytes_per_s", "rate"},
                                {"limit_bytes_per_s", "host copy"},
                                {"share", "share"}},
                    .rows = {}};
  for (std::int64_t const bytes : {std::int64_t{4} << 20, std::int64_t{quick ? 8 : 64} << 20}) {
    auto const memories = on_all_ranks(input.ranks, [&] { return std::make_unique<Memories>(bytes, input.ledger); });
    add_copies(copies, input, *memories);
  }
  BenchTable memory{.key = "memory",
                    .columns = {{"memory", "memory"},
                                {"bytes", "bytes"},
                                {"seconds", "ms"},
                                {"spread", "spread"},
                                {"bytes_per_s", "rate"}},
                    .rows = {}};
  // Caches are below 100 MB on devices, and up to some hundred on hosts.
  std::int64_t const mebi = std::int64_t{1} << 20;
  if constexpr (!runs_on_host<Lane>) add_memory<DeviceMemory>(memory, "device", input, (quick ? 1 : 32) * mebi, Lane());
  add_memory<HostMemory>(memory, "host", input, (quick ? 1 : 64) * mebi, HostLane());
  return {.benchmark = "link",
          .title = "The link between device and host memory, and what the memories give",
          .facts = bench_facts(input.ranks),
          .tables = {std::move(copies), std::move(memory)},
          .notes = {"up is to the device. host copy: as many bytes of one way within host memory, by one thread, in "
                    "turn with it.",
                    "memory: three arrays of floats, read and written, by all threads."},
          .warnings = {}};
}

} // namespace kozero
