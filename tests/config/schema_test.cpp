// The table of keys against the structs.
#include "config/compare.hpp"
#include "config/schema.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <set>

using namespace kozero;
using namespace kozero::test;

TEST_CASE("keys are unique, explained, and in the order of their sections", "[schema]") {
  Config config;
  std::set<std::string> paths;
  std::vector<std::string> order;
  for (auto const& key : keys_of(config)) {
    INFO(key.path);
    CHECK(paths.insert(key.path).second);
    CHECK_FALSE(key.help.empty());
    CHECK_FALSE(legal_values(key).empty());
    if (order.empty() || order.back() != key.section()) order.push_back(key.section());
  }
  std::vector<std::string> names;
  for (auto const& section : sections()) {
    names.emplace_back(section.name);
    CHECK_FALSE(section.help.empty());
  }
  CHECK(order == names);
}

TEST_CASE("every key stands for a field of its own", "[schema]") {
  Config config;
  auto const keys = keys_of(config);
  for (auto const& key : keys) {
    INFO(key.path);
    Config other;
    auto const others = keys_of(other);
    auto const& same = *std::ranges::find(others, key.path, &Key::path);
    // Some other legal text for it: none of these is any key's default.
    std::string assigned;
    for (std::string const text : {"3", "2", "0.7", "false", "true", "uint32", "host", "unit", "wsd", "compute", "fp32",
                                   "gpt2-774m", "7MiB", "7min", "topology", "stop", "tiles", "nccl"}) {
      if (assign(same, text).empty() && text_of(same) != text_of(key)) {
        assigned = text;
        break;
      }
    }
    if (key.path == "model.family") continue; // made with the configuration
    REQUIRE_FALSE(assigned.empty());
    CHECK_FALSE(other == config);
    // Only this key shows the change.
    auto const differences = compare_decks(config, other);
    REQUIRE(differences.size() == 1);
    CHECK(differences[0].key == key.path);
  }
}

TEST_CASE("words stand for the enumerators of the same name", "[schema]") {
  Config config;
  auto const keys = keys_of(config);
  auto const set = [&](char const* path, char const* word) {
    REQUIRE(assign(*std::ranges::find(keys, path, &Key::path), word).empty());
  };
  set("data.format", "llmc");
  CHECK(config.data.format == DataFormat::llmc);
  set("data.format", "uint16");
  CHECK(config.data.format == DataFormat::uint16);
  set("model.attention", "tiles");
  CHECK(config.model.attention == AttentionBy::tiles);
  set("parallel.transport", "mpi-device");
  CHECK(config.parallel.transport == Transport::mpi_device);
  set("parallel.transport", "nccl");
  CHECK(config.parallel.transport == Transport::nccl);
  set("schedule.kind", "wsd");
  CHECK(config.schedule.kind == ScheduleKind::wsd);
  set("schedule.kind", "linear");
  CHECK(config.schedule.kind == ScheduleKind::linear);
  set("precision.compute", "fp32");
  CHECK(config.precision.compute == ComputeType::fp32);
  set("precision.gradients", "compute");
  CHECK(config.precision.gradients == GradientType::compute);
  set("run.reproducibility", "topology");
  CHECK(config.run.reproducibility == Reproducibility::topology);
  set("offload.optimizer", "host");
  CHECK(config.offload.optimizer == OffloadTarget::host);
  set("activations.recompute", "unit");
  CHECK(config.activations.recompute == Recompute::unit);
  set("model.size", "gpt2-1.5b");
  CHECK(config.model.size == "gpt2-1.5b");
  set("model.size", "none");
  CHECK(config.model.size.empty());
}

TEST_CASE("how often something happens is a number of updates or a time", "[schema]") {
  Config config;
  auto const keys = keys_of(config);
  Key const& key = *std::ranges::find(keys, "checkpoint.every", &Key::path);
  auto const read = [&](char const* text) {
    REQUIRE(assign(key, text).empty());
    return limits_fault(key);
  };
  CHECK(read("2k").empty());
  CHECK(config.checkpoint.every == Every(2000));
  CHECK(text_of(key) == "2000");
  CHECK(read("90min").empty());
  CHECK(config.checkpoint.every.seconds == 5400);
  CHECK(text_of(key) == "90min");
  CHECK(read("0").empty()); // what was written last counts alone
  CHECK(config.checkpoint.every == Every());
  for (char const* const text : {"often", "5m", "5 min", "none"}) CHECK(contains(assign(key, text), {"30min"}));
  CHECK(contains(assign(key, "1.5"), {"remove the point"}));
  CHECK(config.checkpoint.every == Every());
  for (char const* const text : {"-1", "0s", "-5min"}) CHECK(contains(read(text), {text, "out of range", "30min"}));
}
