#include "plan/delayed_gain.hpp"

#include "bench/adam.hpp"
#include "config/compute_type.hpp"
#include "core/ledger.hpp"
#include "kernels/gemm.hpp"
#include "kernels/gemm_workspace.hpp"
#include "model/families.hpp"
#include "zero/link.hpp"

#include <algorithm>
#include <chrono>

namespace kozero {

namespace {

constexpr double worth_it = 0.02; // part of the time below which there is nothing to win

/// The shortest of a few runs of work(), in seconds.
template <class Work>
double seconds_of(Work const& work) {
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    auto const start = std::chrono::steady_clock::now();
    work();
    double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = round == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

/// Floating-point operations a second of a product of the model's shape.
template <class T>
double product_rate(std::int64_t width) {
  std::int64_t const m = 512;
  std::int64_t const n = std::clamp<std::int64_t>(width, 64, 4096);
  Ledger ledger;
  DeviceBuffer<T> const a(ledger, Category::workspace, "probe", m * n), b(ledger, Category::workspace, "probe", n * n),
      c(ledger, Category::workspace, "probe", m * n);
  LazyLane const lane;
  GemmWorkspace const workspace(lane, Fp32Products::exact, ledger);
  double const seconds = seconds_of([&] {
    gemm<T, T>(lane, m, n, n, c.data(), n, {a.data(), n}, {b.data(), n}, nullptr, Into::overwrite);
    lane.fence("rate");
  });
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(n) / seconds;
}

/// Bytes a second from pinned memory to the device.
double link_rate() {
  std::int64_t const count = std::int64_t{8} << 20;
  Ledger ledger;
  DeviceBuffer<float> const device(ledger, Category::workspace, "probe", count);
  PinnedBuffer<float> const pinned(ledger, Category::workspace, "probe", count);
  Lane const lane;
  LinkTraffic ignored;
  double const seconds = seconds_of([&] {
    copy_up(lane, device.data(), pinned.data(), count, ignored);
    lane.fence("rate");
  });
  return static_cast<double>(count) * sizeof(float) / seconds;
}

} // namespace

DelayedGain predict_delayed_gain(BatchTimes const& times, HostWork work) {
  DelayedGain gain;
  gain.synchronous_s = times.device_s + std::max(times.host_s, times.up_s);
  gain.delayed_s = work == HostWork::overlaps ? std::max(times.device_s, times.host_s) + times.up_s
                                              : times.device_s + times.host_s + times.up_s;
  return gain;
}

namespace {

/// Parameters a rank whose optimizer is the host's.
double parameters_on_host(Config const& config, BatchShape const& batch) {
  std::int64_t const psi = parameter_count(architecture_of(config.model)->layout());
  return static_cast<double>(psi) / static_cast<double>(batch.ranks) * config.offload.ratio;
}

} // namespace

MachineRates measure_machine_rates(Config const& config, BatchShape const& batch) {
  auto const on_host = static_cast<std::int64_t>(parameters_on_host(config, batch));
  DType const compute = dtype_of_compute(config.precision.compute);
  DType const gradients = config.precision.gradients == GradientType::fp32 ? DType::f32 : compute;
  std::int64_t const width = architecture_of(config.model)->products().front().inputs;
  return {.flops = with_float_type(compute, [&]<class T>(T) { return product_rate<T>(width); }),
          .adam_parameters =
              1e9 / measure_host_adam_ns_per_parameter(std::max<std::int64_t>(on_host, 1), compute, gradients),
          .link_bytes = link_rate()};
}

BatchTimes batch_times(Config const& config, BatchShape const& batch, MachineRates const& rates) {
  double const on_host = parameters_on_host(config, batch);
  auto const tokens = static_cast<double>(batch.micro * batch.accumulate * config.model.context);
  auto const element_bytes = static_cast<double>(size_of(dtype_of_compute(config.precision.compute)));
  return {.device_s =
              tokens * architecture_of(config.model)->training_flops(config.activations.recompute) / rates.flops,
          .host_s = on_host / rates.adam_parameters,
          .up_s = on_host * element_bytes / rates.link_bytes};
}

std::string describe_delayed_gain(BatchTimes const& times, HostWork work) {
  DelayedGain const gain = predict_delayed_gain(times, work);
  std::string text = fmt::format("predicted a batch: device {:.3g} s, host {:.3g} s; {:.3g} s without delay, {:.3g} s "
                                 "with",
                                 times.device_s, times.host_s, gain.synchronous_s, gain.delayed_s);
  if (gain.part() >= worth_it) return text + fmt::format(", {:.0f} % less", 100 * gain.part());
  text += work == HostWork::takes_turns ? ": no gain, as device and host are the same cores and nothing overlaps"
                                        : ": no gain, as one of them has next to nothing to do";
  return text + "; better leave offload.delayed_update.start at none";
}

} // namespace kozero
