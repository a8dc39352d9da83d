#include "support/catch.hpp"

#include "model/model.hpp"
#include "plan/delayed_gain.hpp"

using namespace kozero;

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

TEST_CASE("the work of a batch is 6 operations a weight and token, and attention's pairs") {
  ModelConfig model{.layers = 3, .heads = 2, .width = 64, .context = 16, .vocabulary = 1000};
  std::int64_t matrices = 0; // the products' weights: all matrices but the positions
  for (auto const& block : model_layout(model)) {
    for (auto const& tensor : block.tensors()) {
      if (tensor.spec.shape.size() == 2 && tensor.spec.name != "wpe.weight") matrices += tensor.spec.size();
    }
  }
  // q·k and p·v: 2 · 2 · C operations a pair forward, twice that backward, T(T+1)/2 ≈ T²/2 pairs a window.
  double const pairs = 16.0 * 16.0 / 2.0;
  double const window = 6.0 * static_cast<double>(matrices) * 16 + 3 * 3 * 4.0 * 64 * pairs;
  CHECK(training_flops(model, {}, 16) == Approx(window));
  CHECK(training_flops(model, {Recompute::unit}, 16) > 1.2 * window);
}

TEST_CASE("the measurements give times for every type") {
  Config config;
  config.model = {.layers = 2, .heads = 2, .width = 64, .context = 16, .vocabulary = 300};
  config.offload.optimizer = OffloadTarget::host;
  for (auto const compute : {ComputeType::fp32, ComputeType::bf16, ComputeType::fp16}) {
    config.precision.compute = compute;
    BatchTimes const times = estimate_batch_times(config, {.micro = 2, .accumulate = 2, .ranks = 3});
    CHECK(times.device_s > 0);
    CHECK(times.host_s > 0);
    CHECK(times.up_s > 0);
  }
}
