#include "bench/peak.hpp"

#include "core/device_name.hpp"
#include "core/error.hpp"
#include "core/host_simd.hpp"
#include "core/launch.hpp"

#include <array>

namespace kozero {

namespace {

/// Teraflops a second; 0: not in the list.
struct KnownDevice {
  std::string_view name; // a part of it; the first one that fits counts
  double bits16 = 0;
  double tf32 = 0;
  double fp32 = 0; // without tensor cores
  char const* source = "";
};

// Rates of tensor cores without sparsity; for Hopper and later NVIDIA's data sheets tell those with it, twice these.
constexpr char const* h100_sheet = "NVIDIA H100 data sheet, dense";
constexpr char const* h200_sheet = "NVIDIA H200 data sheet, dense";
constexpr char const* a100_sheet = "NVIDIA A100 data sheet, dense";
constexpr char const* blackwell_sheet = "NVIDIA GB200 NVL72 and HGX B200 data sheet, dense";
constexpr std::array<KnownDevice, 12> known_devices = {{
    {"GB200", 2500, 1250, 80, blackwell_sheet},
    {"B200", 2250, 1100, 75, blackwell_sheet},
    {"H200 NVL", 835.5, 417.5, 60, h200_sheet},
    {"GH200", 989.5, 494.5, 67, "NVIDIA GH200 data sheet, dense"},
    {"H200", 989.5, 494.5, 67, h200_sheet},
    {"H100 PCIe", 756, 378, 51, "NVIDIA H100 PCIe data sheet, dense"},
    {"H100 NVL", 835.5, 417.5, 60, h100_sheet},
    {"H100", 989.5, 494.5, 67, h100_sheet},
    {"H800", 989.5, 494.5, 67, h100_sheet},
    {"A100", 312, 156, 19.5, a100_sheet},
    {"A800", 312, 156, 19.5, a100_sheet},
    {"L40S", 362, 183, 91.6, "NVIDIA L40S data sheet, dense"},
}};

constexpr std::int64_t fma_times = 1 << 18;

/// Numbers of fp32 that are worked on at once: twelve vectors hide the latency, and fit in 16 registers.
constexpr std::int64_t chains(HostTarget target) {
  constexpr std::int64_t vectors = 12;
  switch (target) {
  case HostTarget::avx512: return vectors * 16;
  case HostTarget::avx2: return vectors * 8;
  case HostTarget::baseline: return vectors * 4;
  }
  return 0;
}

/// `n` chains of operations, of which one is written down.
template <std::int64_t n, bool fused>
void run_chains(float* result) {
  host_simd([=] {
    std::array<float, n> x;
    for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i);
    for (std::int64_t time = 0; time < fma_times; ++time) {
      for (std::int64_t i = 0; i < n; ++i) x[i] = fused ? math::fma(x[i], 0.5f, 0.25f) : x[i] * 0.5f + 0.25f;
    }
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i];
    *result = sum;
  });
}

} // namespace

std::optional<Peak> known_peak(std::string_view device, DType type, Fp32Products fp32) {
  for (auto const& known : known_devices) {
    if (device.find(known.name) == std::string_view::npos) continue;
    double const of_fp32 = fp32 == Fp32Products::tf32 ? known.tf32 : known.fp32;
    double const teraflops = type == DType::f32 ? of_fp32 : known.bits16;
    return Peak{.flops = teraflops * 1e12, .source = known.source};
  }
  return std::nullopt;
}

FmaLoop::FmaLoop(Ledger& ledger)
    : threads_(HostExec().concurrency()), results_(ledger, Category::workspace, "peak", threads_) {}

void FmaLoop::run() const {
  launch(HostLane(), "kozero::bench::fma", Range{threads_}, [results = results_.data()](std::int64_t thread) {
    switch (host_target()) {
    case HostTarget::avx512: return run_chains<chains(HostTarget::avx512), true>(results + thread);
    case HostTarget::avx2: return run_chains<chains(HostTarget::avx2), true>(results + thread);
    case HostTarget::baseline: return run_chains<chains(HostTarget::baseline), false>(results + thread);
    }
  });
}

double FmaLoop::operations() const {
  return 2.0 * static_cast<double>(threads_) * static_cast<double>(chains(host_target())) *
         static_cast<double>(fma_times);
}

ProductLimit::ProductLimit(DType type, Fp32Products fp32, Ledger& ledger) {
  if constexpr (runs_on_host<Lane>) {
    loop_.emplace(ledger);
  } else {
    peak_ = known_peak(device_name(), type, fp32);
  }
}

std::function<void()> ProductLimit::piece() const {
  if (!loop_) return {};
  return [this] { loop_->run(); };
}

std::optional<double> ProductLimit::flops(RoundFigures const& figures) const {
  if (loop_) return loop_->operations() / figures.limit_s;
  return peak_ ? std::optional(peak_->flops) : std::nullopt;
}

std::optional<double> ProductLimit::share(RoundFigures const& figures, double operations) const {
  if (loop_) return figures.ratio * operations / loop_->operations();
  return peak_ ? std::optional(operations / figures.work_s / peak_->flops) : std::nullopt;
}

std::string ProductLimit::describe() const {
  if (loop_) {
    return fmt::format("measured beside it: multiply-adds of fp32 in registers, {}, {} threads", name_of(host_target()),
                       HostExec().concurrency());
  }
  return peak_ ? peak_->source : "unknown: " + device_name() + " is in no list";
}

} // namespace kozero
