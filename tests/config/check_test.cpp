// One key against another.
#include "config/check.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/gpt2_model.hpp"

#include <algorithm>
#include <functional>

using namespace kozero;
using namespace kozero::test;

namespace {

Config good() {
  Config config;
  config.data.train = "corpus.txt";
  return config;
}

/// The keys that findings name first.
std::vector<std::string> keys(std::vector<Finding> const& findings) {
  std::vector<std::string> names;
  for (auto const& finding : findings) names.push_back(finding.keys.front());
  return names;
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("the defaults and a training file are a sound configuration", "[check]") {
  CHECK(check(good()).faults.empty());
  CHECK(check(good()).warnings.empty());
}

TEST_CASE("each fault names its key and says what to do", "[check]") {
  struct Row {
    char const* key;
    std::function<void(Config&)> spoil;
  };
  std::vector<Row> const rows = {
      {"data.train", [](Config& c) { c.data.train.clear(); }},
      {"data.validation", [](Config& c) { c.data.validation = "1.0"; }},
      {"data.validation", [](Config& c) { c.data.validation = "-0.1"; }},
      {"data.validation", [](Config& c) { c.data.validation = "nan"; }},
      {"data.validation", [](Config& c) { c.data.validation = "1e-400"; }},
      {"model.width", [](Config& c) { gpt2_of(c.model).heads = 3; }},
      {"model.heads", [](Config& c) { gpt2_of(c.model).heads = 0; }},
      {"model.layers", [](Config& c) { gpt2_of(c.model).layers = -1; }},
      {"model.vocabulary", [](Config& c) { c.model.vocabulary = std::int64_t{1} << 31; }},
      {"batch.micro", [](Config& c) { c.model.context = c.model.vocabulary = 2'147'483'647, c.batch.micro = 4; }},
      {"batch.global", [](Config& c) { c.batch.global = 16, c.batch.accumulate = 2; }},
      {"batch.global", [](Config& c) { c.batch.global = 12; }},
      {"batch.micro", [](Config& c) { c.batch.micro = 0, c.batch.global = 12; }},
      {"schedule.min_lr", [](Config& c) { c.schedule.min_lr = 2e-3; }},
      {"optimizer.lr", [](Config& c) { c.optimizer.lr = 0; }},
      {"optimizer.lr", [](Config& c) { c.optimizer.lr = std::numeric_limits<double>::quiet_NaN(); }},
      {"optimizer.clip", [](Config& c) { c.optimizer.clip = std::numeric_limits<double>::infinity(); }},
      {"optimizer.betas", [](Config& c) { c.optimizer.betas[1] = 1; }},
      {"optimizer.betas", [](Config& c) { c.optimizer.betas[0] = -1e-9; }},
      {"zero.stage", [](Config& c) { c.zero.stage = 4; }},
      {"precision.loss_scale.initial", [](Config& c) { c.precision.loss_scale.initial = 1000; }},
      {"offload.optimizer", [](Config& c) { c.offload.optimizer = OffloadTarget::host; }},
      {"precision.gradients",
       [](Config& c) {
         c.run.reproducibility = Reproducibility::topology;
         c.precision.gradients = GradientType::compute;
       }},
      {"parallel.tensor", [](Config& c) { c.parallel.tensor = 2; }},
      {"parallel.context", [](Config& c) { c.parallel.context = 4; }},
      {"parallel.context", [](Config& c) { c.parallel.context = 0; }},
      {"memory.device_limit", [](Config& c) { c.memory.device_limit_bytes = 0; }},
  };
  for (auto const& [key, spoil] : rows) {
    Config config = good();
    spoil(config);
    INFO(key);
    Findings const findings = check(config);
    REQUIRE(keys(findings.faults) == Names{key});
    CHECK(findings.faults.front().text.find("; ") != std::string::npos);
    CHECK(check(config, {key}).faults.empty());
  }
}

TEST_CASE("what is legal but hardly meant is a warning", "[check]") {
  Config config = good();
  config.run.updates = 10;
  config.schedule.warmup = 10;
  CHECK(check(config).warnings.empty());
  config.schedule.warmup = 11;
  CHECK(keys(check(config).warnings) == Names{"schedule.warmup"});
  CHECK(check(config).faults.empty());

  config = good();
  config.schedule.kind = ScheduleKind::wsd;
  config.schedule.warmup = 80;
  CHECK(check(config).warnings.empty());
  config.schedule.warmup = 81;
  CHECK(keys(check(config).warnings) == Names{"schedule.decay"});

  config = good();
  config.evaluate.every = 5;
  CHECK(check(config).warnings.empty());
  config.data.validation = "0.0";
  CHECK(keys(check(config).warnings) == Names{"evaluate.every"});
  config.checkpoint.keep_best = 1;
  CHECK(keys(check(config).warnings) == Names{"evaluate.every", "checkpoint.keep_best"});
}

TEST_CASE("the same bits on any number of ranks want one batch for all of them", "[check]") {
  Config config = good();
  config.run.reproducibility = Reproducibility::topology;
  CHECK(check(config).faults.empty());
  CHECK(keys(check(config).warnings) == Names{"batch.global"});
  config.batch.global = 64;
  CHECK(check(config).warnings.empty());
  for (std::int64_t const ranks : {1, 2, 4, 8, 1024}) CHECK_NOTHROW(check_ranks(config, ranks));
  for (std::int64_t const ranks : {3, 6, 7, 96}) CHECK_THROWS_AS(check_ranks(config, ranks), InputError);
  config.precision = {.compute = ComputeType::fp32, .gradients = GradientType::compute}; // which is fp32 too
  CHECK(check(config).faults.empty());
  config.run.reproducibility = Reproducibility::rerun;
  CHECK_NOTHROW(check_ranks(config, 3));
}

TEST_CASE("what has no effect is warned of", "[check]") {
  Config config = good();
  config.offload.ratio = 0.5;
  config.offload.delayed_update.start = 7;
  config.precision.loss_scale.window = 7;
  CHECK(check(config).faults.empty());
  CHECK(keys(check(config).warnings) ==
        Names{"precision.loss_scale.initial", "offload.delayed_update.start", "offload.ratio"});
  config.zero.stage = 1;
  config.offload.optimizer = OffloadTarget::host;
  config.precision.compute = ComputeType::fp16;
  CHECK(check(config).warnings.empty());
  config.offload.ratio = 0;
  CHECK(keys(check(config).warnings) == Names{"offload.delayed_update.start"});

  config = good();
  config.precision.tf32 = true;
  CHECK(keys(check(config).warnings) == Names{"precision.tf32"});
  config.precision.compute = ComputeType::fp32;
  CHECK(check(config).warnings.empty());
}

TEST_CASE("data.validation is a fraction or a file", "[check]") {
  CHECK(validation_fraction({"", "0.25"}) == 0.25);
  CHECK(validation_fraction({"", "0"}) == 0.0);
  CHECK_FALSE(validation_fraction({"", "./0.25"}).has_value());
  CHECK_FALSE(validation_fraction({"", "val.bin"}).has_value());
  CHECK_FALSE(validation_fraction({"", "0.25.bin"}).has_value());
}

TEST_CASE("a batch is resolved for a number of ranks", "[check]") {
  BatchConfig batch;
  batch.micro = 4;
  CHECK(resolve_batch(batch, 3) == ResolvedBatch{4, 1, 12});
  batch.accumulate = 5;
  CHECK(resolve_batch(batch, 3) == ResolvedBatch{4, 5, 60});
  batch.accumulate.reset();
  batch.global = 60;
  CHECK(resolve_batch(batch, 3) == ResolvedBatch{4, 5, 60});
  CHECK(resolve_batch(batch, 1) == ResolvedBatch{4, 15, 60});
  CHECK_THROWS_AS(resolve_batch(batch, 2), InputError);
  CHECK_THROWS_AS(resolve_batch(batch, 16), InputError);
  batch.accumulate = 5;
  CHECK_THROWS_AS(resolve_batch(batch, 3), InputError);
  batch = {.micro = 0, .accumulate = {}, .global = {}};
  CHECK_THROWS_AS(resolve_batch(batch, 1), InputError);
}
