#include "support/catch.hpp"

#include "plan/delayed_gain.hpp"
#include "support/gpt2_model.hpp"

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

TEST_CASE(
    "the times are those of the batch's operations and of the host's parameters, at rates that a machine can have") {
  Config config;
  config.model = gpt2_model({.layers = 2, .heads = 2, .width = 64, .context = 16, .vocabulary = 300});
  config.offload.optimizer = OffloadTarget::host;
  double const matrices = 2 * 12 * 64 * 64 + 300 * 64;
  double const on_host = (matrices + 16 * 64 + 2 * 13 * 64 + 2 * 64) / 3; // of three ranks
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16, ComputeType::fp16}) {
    config.precision.compute = compute;
    BatchTimes const times = estimate_batch_times(config, {.micro = 2, .accumulate = 2, .ranks = 3});
    double const bytes = compute == ComputeType::fp32 ? 4 : 2;
    check_between(1e7, 6 * matrices * 2 * 2 * 16 / times.device_s, 1e15); // operations a second
    check_between(1e5, on_host / times.host_s, 1e12);                     // parameters
    check_between(1e7, on_host * bytes / times.up_s, 1e13);               // bytes
  }
}

TEST_CASE("the times grow with what they are of, and with nothing else") {
  Config config;
  config.model = gpt2_model({.layers = 2, .heads = 2, .width = 64, .context = 16, .vocabulary = 300});
  config.offload.optimizer = OffloadTarget::host;
  BatchTimes const times = estimate_batch_times(config, {.micro = 2, .accumulate = 2, .ranks = 3});
  // Each is of a measurement of its own, so a factor of four either way is rounding.
  auto const check_ratios = [&](BatchTimes const& other, double device, double up) {
    check_between(device / 4, other.device_s / times.device_s, device * 4);
    check_between(up / 4, other.up_s / times.up_s, up * 4);
  };
  check_ratios(estimate_batch_times(config, {.micro = 2, .accumulate = 64, .ranks = 3}), 32, 1);
  check_ratios(estimate_batch_times(config, {.micro = 64, .accumulate = 2, .ranks = 3}), 32, 1);
  check_ratios(estimate_batch_times(config, {.micro = 2, .accumulate = 2, .ranks = 96}), 1, 1.0 / 32);
  config.offload.ratio = 1.0 / 32;
  BatchTimes const little = estimate_batch_times(config, {.micro = 2, .accumulate = 2, .ranks = 3});
  check_ratios(little, 1, 1.0 / 32);
  CHECK(little.host_s < times.host_s);
  config.offload.ratio = 0;
  BatchTimes const none = estimate_batch_times(config, {.micro = 2, .accumulate = 2, .ranks = 3});
  CHECK(none.host_s == 0.0);
  CHECK(none.up_s == 0.0);
}
