// Checkpoints of more ranks than some tensors have elements.
#include "support/catch.hpp"
#include "support/small_run.hpp"
#include "support/training.hpp"

#include "io/checkpoint.hpp"

using namespace kozero;
using namespace kozero::test;

TEST_CASE_METHOD(World, "a checkpoint of more ranks than elements loads on one rank") { // CASES 2
  SharedFolder const folder(world.ranks);
  for (std::int64_t stage = 1; stage <= 3; ++stage) {
    SmallRun<float> run({.model = tiny_model(), .stage = stage}, world);
    std::string const hash = run.run().hash;
    auto const state = run.state();
    std::string const name = "stage" + std::to_string(stage);
    std::filesystem::create_directories(folder.file(name));
    auto const path = save_checkpoint(folder.file(name), {.state_hash = hash}, state, 1, world.ranks);

    Alone self;
    SmallRun<float> alone({.model = tiny_model()}, self);
    CheckpointReader const reader(path);
    reader.read(alone.state());
    INFO(name);
    CHECK(alone.engine().state_hash(Lane()) == hash);
  }
}
