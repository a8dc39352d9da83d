// Runs that commit 4a3c0c7 began and this program ends (tests/reference/checkpoints-v1).
#include "support/catch.hpp"
#include "support/training.hpp"

#include "io/deck.hpp"

using namespace kozero;
using namespace kozero::test;

namespace {

std::string former_file(std::string const& name) {
  return std::string(KOZERO_SOURCE_DIR "/tests/reference/checkpoints-v1/") + name;
}

} // namespace

TEST_CASE_METHOD(
    World,
    "a run that goes on from an older checkpoint has the losses that the old program had, on any number of ranks") {
  SharedFolder const folder(world.ranks);
  for (std::string const run :
       {"stage-0", "stage-1", "stage-2-half-offload", "stage-3-offload", "delayed", "delayed-bf16", "fp16", "untied"}) {
    std::filesystem::path const checkpoint = former_file(run + "/step-00000004");
    CheckpointInfo const info = CheckpointReader(checkpoint).info();
    Config config = read_stored_deck(info.deck, info.format_version).config;
    config.data.train = former_file("tokens.bin");
    Metrics const former(former_file(run));
    Metrics const resumed = trained(config, folder.file(run), world, checkpoint);

    auto const seen = static_cast<std::ptrdiff_t>(info.counters.batches_seen);
    auto const rest = [seen](std::vector<double> const& all) { return std::vector(all.begin() + seen, all.end()); };
    double const tolerance = config.precision.compute == ComputeType::fp32 ? 1e-5 : 5e-3;
    INFO(run);
    REQUIRE(former.updates.size() == 8);
    REQUIRE(resumed.updates.size() == static_cast<std::size_t>(8 - seen));
    CHECK(largest_difference(resumed.losses(), rest(former.losses())) < tolerance);
    CHECK(largest_difference(resumed.numbers("norm"), rest(former.numbers("norm"))) < 100 * tolerance);
    CHECK(resumed.numbers("lr") == rest(former.numbers("lr")));
    CHECK(resumed.numbers("updates_applied") == rest(former.numbers("updates_applied")));
    if (info.loss_scale) CHECK(resumed.numbers("loss_scale") == rest(former.numbers("loss_scale")));
    CHECK(resumed.ends.back().at("updates_applied") == former.ends.back().at("updates_applied"));
  }
}
