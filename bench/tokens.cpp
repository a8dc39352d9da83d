// The tokens of 64 windows: in the order of training beside the order of the file, and what finding that order takes.
#include "bench/pair.hpp"
#include "data/sampler.hpp"
#include "io/corpus.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace kozero;
using namespace kozero::bench;

constexpr std::int64_t rows = 64;

/// A file of 16 Mi ids.
class Windows {
public:
  explicit Windows(std::int64_t context)
      : inputs_(static_cast<std::size_t>(context)), targets_(static_cast<std::size_t>(context)) {
    std::string bytes;
    for (std::int64_t i = 0; i < std::int64_t{1} << 24; ++i) {
      auto const id = static_cast<unsigned>(i * 7919 % 50257);
      bytes += static_cast<char>(id & 0xff);
      bytes += static_cast<char>(id >> 8);
    }
    set_.file = std::make_shared<TokenFile>(folder_.write("tokens.bin", bytes), DataFormat::uint16, 50257);
    set_.tokens = {0, set_.file->size()};
    set_.windows = windows(set_.file->size(), context);
  }
  std::int64_t count() const { return set_.windows; }
  void read(std::int64_t window) {
    set_.read_window(window, inputs_, targets_);
    benchmark::DoNotOptimize(inputs_.data());
    benchmark::DoNotOptimize(targets_.data());
  }

private:
  test::TemporaryFolder folder_;
  TokenSet set_;
  std::vector<std::int32_t> inputs_, targets_;
};

void read(benchmark::State& state) {
  Windows windows(state.range(0));
  Sampler const sampler(1337, windows.count());
  std::int64_t sampled = 0;
  std::int64_t in_order = 0;
  measure_pair(
      state,
      [&] {
        for (std::int64_t row = 0; row < rows; ++row) windows.read(sampler.window(sampled++));
      },
      [&] {
        for (std::int64_t row = 0; row < rows; ++row) windows.read(in_order++ % windows.count());
      });
}

void order(benchmark::State& state) {
  Windows windows(state.range(0));
  Sampler const sampler(1337, windows.count());
  std::int64_t sample = 0;
  std::int64_t in_order = 0;
  measure_pair(
      state,
      [&] {
        for (std::int64_t row = 0; row < rows; ++row) benchmark::DoNotOptimize(sampler.window(sample++));
      },
      [&] {
        for (std::int64_t row = 0; row < rows; ++row) windows.read(in_order++ % windows.count());
      });
}

BENCHMARK(read)->Name("tokens/read")->ArgName("T")->Arg(1024)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(order)->Name("tokens/order")->ArgName("T")->Arg(1024)->UseManualTime()->Unit(benchmark::kMicrosecond);

} // namespace
