#include "support/catch.hpp"

#include "plan/delayed_gain.hpp"
#include "support/gpt2_model.hpp"

#include <array>

using namespace kozero;
using namespace kozero::test;

namespace {

void check_between(double least, double value, double most) {
  CHECK(value > least);
  CHECK(value < most);
}

} // namespace

TEST_CASE("what a delay gains is the shorter of the two times, less the way up that no longer overlaps") {
  BatchTimes const times{.device_s = 1.0, .host_s = 0.4, .up_s = 0.1};
  DelayedGain const gain = predict_delayed_gain(times, HostWork::overlaps);
  CHECK(gain.synchronous_s == Approx(1.4));
  CHECK(gain.delayed_s == Approx(1.1));
  CHECK(gain.part() == Approx(0.3 / 1.4));
  CHECK(predict_delayed_gain({.device_s = 0.4, .host_s = 1.0, .up_s = 0.1}, HostWork::overlaps).delayed_s ==
        Approx(1.1));
  CHECK(predict_delayed_gain(times, HostWork::takes_turns).part() < 0);
}

TEST_CASE("the words say what is won, and advise against a delay that wins nothing") {
  BatchTimes const times{.device_s = 1.0, .host_s = 0.4, .up_s = 0.1};
  auto const said = [](BatchTimes const& batch, HostWork work) { return describe_delayed_gain(batch, work); };
  CHECK(said(times, HostWork::overlaps).find("1.4 s without delay, 1.1 s with, 21 % less") != std::string::npos);
  CHECK(said(times, HostWork::overlaps).find("none") == std::string::npos);
  CHECK(said(times, HostWork::takes_turns).find("same cores") != std::string::npos);
  CHECK(said(times, HostWork::takes_turns).find("leave offload.delayed_update.start at none") != std::string::npos);
  CHECK(said({.device_s = 1.0, .host_s = 1e-3, .up_s = 1e-4}, HostWork::overlaps).find("next to nothing") !=
        std::string::npos);
}

TEST_CASE("rates are measured that a machine can have") {
  Config config;
  config.model = gpt2_model({.layers = 2, .heads = 2, .width = 64, .context = 16, .vocabulary = 300});
  config.offload.optimizer = OffloadTarget::host;
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16, ComputeType::fp16}) {
    config.precision.compute = compute;
    MachineRates const rates = measure_machine_rates(config, {.micro = 2, .accumulate = 2, .ranks = 3});
    check_between(1e5, rates.flops, 1e15); // a machine under load may be slow
    check_between(1e4, rates.adam_parameters, 1e12);
    check_between(1e5, rates.link_bytes, 1e13);
  }
}

TEST_CASE("the times are those of the batch's operations and of the host's parameters, at the machine's rates") {
  Config config;
  config.model = gpt2_model({.layers = 2, .heads = 2, .width = 64, .context = 16, .vocabulary = 300});
  config.offload.optimizer = OffloadTarget::host;
  MachineRates const rates{.flops = 1e9, .adam_parameters = 1e6, .link_bytes = 1e8};
  double const matrices = 2 * 12 * 64 * 64 + 300 * 64;
  double const attention = 2 * 64 * 16; // layers, width, half of the pairs twice
  double const psi = matrices + 16 * 64 + 2 * 13 * 64 + 2 * 64;
  auto const close = [](double value, double expected) {
    check_between(expected * 0.999999, value, expected * 1.000001);
  };
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16, ComputeType::fp16}) {
    config.precision.compute = compute;
    double const bytes = compute == ComputeType::fp32 ? 4 : 2;
    for (auto const& [micro, accumulate, ranks] : {std::array{2, 2, 3}, {2, 64, 3}, {64, 2, 3}, {2, 2, 96}}) {
      for (double const ratio : {1.0, 1.0 / 32}) {
        config.offload.ratio = ratio;
        BatchTimes const times = batch_times(config, {.micro = micro, .accumulate = accumulate, .ranks = ranks}, rates);
        close(times.device_s, 6 * (matrices + attention) * micro * accumulate * 16 / 1e9);
        close(times.host_s, psi / ranks * ratio / 1e6);
        close(times.up_s, psi / ranks * ratio * bytes / 1e8);
      }
    }
  }
  config.offload.ratio = 0;
  BatchTimes const none = batch_times(config, {.micro = 2, .accumulate = 2, .ranks = 3}, rates);
  CHECK(none.host_s == 0.0);
  CHECK(none.up_s == 0.0);
}
