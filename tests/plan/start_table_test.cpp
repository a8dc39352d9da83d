// What the start table says of devices. Places are made up: it takes no device to see this.
#include "plan/start_table.hpp"
#include "support/catch.hpp"
#include "support/training.hpp"

#include <algorithm>

using namespace kozero;
using namespace kozero::test;

namespace {

struct Site : RunFixture {
  /// The table of a run on these places.
  StartTable table(std::vector<RankPlace> const& places) {
    Corpus const corpus = open_corpus(config.data, config.model.vocabulary, config.model.context);
    BatchShape const batch = batch_shape(config.batch, static_cast<int>(places.size()));
    return start_table(config, corpus, batch, {summarise(places), "made up", "carrier pigeons", {}});
  }
};

RankPlace on_device(std::string device, int device_node, int node, int visible) {
  RankPlace place{.host = "a", .host_processors = 8};
  place.processors.set(7);
  place.cores = place.processors;
  place.nodes = {node};
  place.device = {
      .identity = {.name = "NVIDIA H200", .uuid = std::move(device), .address = "0000:1b:00.0", .visible = visible},
      .node = device_node,
      .cards = {"mlx5_0"}};
  return place;
}

/// The row's text; none where there is no such row.
std::optional<std::string> row(StartTable const& table, std::string const& name) {
  auto const found = std::ranges::find(table.rows, name, &std::pair<std::string, std::string>::first);
  return found == table.rows.end() ? std::nullopt : std::optional(found->second);
}

bool warns(StartTable const& table, std::vector<std::string> const& words) {
  return std::ranges::any_of(table.warnings, [&](std::string const& warning) { return contains(warning, words); });
}

} // namespace

TEST_CASE_METHOD(Site, "the start table has a row of devices where ranks compute on some") {
  auto const placed = table({on_device("GPU-1", 0, 0, 2), on_device("GPU-2", 0, 0, 2)});
  CHECK(row(placed, "devices") ==
        "2 a host: NVIDIA H200; rank 0 on GPU-1 at 0000:1b:00.0, NUMA node 0, network card mlx5_0");
  for (char const* const word : {"share device", "NUMA", "hidden"}) CHECK_FALSE(warns(placed, {word}));
  CHECK_FALSE(row(table({RankPlace{}}), "devices"));
}

TEST_CASE_METHOD(Site, "the start table warns of ranks that share a device, with a remedy") {
  auto const placed = table({on_device("GPU-1", 0, 0, 1), on_device("GPU-1", 0, 0, 1)});
  CHECK(warns(placed, {"ranks 0-1 on host a share device GPU-1", "start one rank a device"}));
  CHECK_FALSE(warns(placed, {"hidden"}));
}

TEST_CASE_METHOD(Site, "the start table warns of ranks far from their device, with a remedy") {
  auto const placed = table({on_device("GPU-1", 0, 1, 3), on_device("GPU-2", 0, 0, 3), on_device("GPU-3", 1, 0, 3)});
  CHECK(warns(placed, {"ranks 0, 2", "different NUMA nodes", "--cpu-bind"}));
}

TEST_CASE_METHOD(Site, "the start table warns of devices that are hidden from ranks, with a remedy") {
  auto const placed = table({on_device("GPU-1", 0, 0, 1), on_device("GPU-2", 0, 0, 1)});
  CHECK(warns(placed, {"hidden from ranks 0-1", "--gpu-bind=none"}));
  CHECK_FALSE(warns(placed, {"share device"}));
}
