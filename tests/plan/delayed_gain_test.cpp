#include "support/catch.hpp"

#include "plan/delayed_gain.hpp"
#include "support/gpt2_model.hpp"

using namespace kozero;
using namespace kozero::test;

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

TEST_CASE("the measurements give times for every type") {
  Config config;
  config.model = gpt2_model({.layers = 2, .heads = 2, .width = 64, .context = 16, .vocabulary = 300});
  config.offload.optimizer = OffloadTarget::host;
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16, ComputeType::fp16}) {
    config.precision.compute = compute;
    BatchTimes const times = estimate_batch_times(config, {.micro = 2, .accumulate = 2, .ranks = 3});
    CHECK(times.device_s > 0);
    CHECK(times.host_s > 0);
    CHECK(times.up_s > 0);
  }
}
