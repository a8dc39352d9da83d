// Which checkpoints stay when others come, and when the files of the others go.
#include "io/checkpoint_save.hpp"
#include "io/checkpoint_world.hpp"
#include "support/catch.hpp"

#include <fstream>

using namespace kozero;
using namespace kozero::test;
namespace fs = std::filesystem;

TEST_CASE("the newest checkpoints stay, and latest is the last one") {
  World world;
  auto state = world.own(tiny_tensors());
  for (std::int64_t const updates : {9, 10, 20, 30}) world.save(state, updates, 3);
  world.on_first([&] {
    CHECK(names_in(world.checkpoints()) ==
          std::vector<std::string>{"latest", "step-00000010", "step-00000020", "step-00000030"});
    CHECK(resolve_checkpoint(world.run()).filename() == "step-00000030");
  });
  SECTION("a run that went back leaves what lies ahead of it and never removes what it just wrote") {
    world.save(state, 15, 1);
    world.on_first([&] {
      CHECK(names_in(world.checkpoints()) ==
            std::vector<std::string>{"latest", "step-00000015", "step-00000020", "step-00000030"});
      CHECK(fs::read_symlink(world.checkpoints() / "latest") == "step-00000015");
    });
  }
  SECTION("keep counts from one") {
    auto const message = message_of<Error>([&] { world.save(state, 40, 0); });
    CHECK(contains(message, {"checkpoint.keep is 0"}));
  }
}

TEST_CASE("those of the least held-out loss stay beside the newest") {
  World world;
  auto state = world.own(tiny_tensors());
  auto const save = [&](std::int64_t updates, std::optional<double> loss) {
    CheckpointInfo info = sample_info(updates);
    info.held_out_loss = loss;
    auto const folder = save_checkpoint(world.run(), info, state.entries(), {2, 2}, world.all());
    CHECK(CheckpointReader(folder).info().held_out_loss == loss);
    world.all().barrier();
  };
  save(1, 3.5);
  save(2, 1.25); // the best
  save(3, std::nullopt);
  save(4, 2.5); // the second
  save(5, 2.75);
  save(6, 1.5); // and now this one
  save(7, std::nullopt);
  world.on_first([&] {
    CHECK(names_in(world.checkpoints()) ==
          std::vector<std::string>{"latest", "step-00000002", "step-00000006", "step-00000007"});
  });
}

TEST_CASE("checkpoints stay by the order in which they were saved, not by their numbers") {
  World world;
  auto state = world.own(tiny_tensors());
  for (std::int64_t const updates : {10, 20, 30, 15, 12}) world.save(state, updates, 9); // it went back twice
  world.save(state, 30, 2);
  world.on_first([&] {
    CHECK(names_in(world.checkpoints()) == std::vector<std::string>{"latest", "step-00000012", "step-00000030"});
  });
}

TEST_CASE("a checkpoint that cannot be read is not removed") {
  World world;
  auto state = world.own(tiny_tensors());
  world.save(state, 1);
  world.on_first([&] { std::ofstream(world.checkpoints() / "step-00000001" / "checkpoint.h5") << "not readable now"; });
  Retention const kept = GENERATE(Retention(1), Retention(1, 1));
  world.save(state, 2, kept);
  world.save(state, 3, kept);
  world.on_first([&] {
    CHECK(names_in(world.checkpoints()) == std::vector<std::string>{"latest", "step-00000001", "step-00000003"});
  });
}

TEST_CASE("a save takes the names of former checkpoints, and the next one removes their files") {
  World world;
  auto state = world.own(tiny_tensors());
  world.save(state, 1);
  for (std::int64_t const updates : {2, 3}) {
    CheckpointSave save(world.run(), sample_info(updates), state.entries(), {1}, world.all());
    save.write([] {});
    save.commit([] { return std::string("a hash"); });
    world.on_first([&] {
      CHECK(names_in(world.checkpoints()) == std::vector<std::string>{"latest",
                                                                      fmt::format("step-{:08}.partial", updates - 1),
                                                                      fmt::format("step-{:08}", updates)});
    });
  }
  world.on_first([&] {
    remove_leftovers(world.checkpoints());
    CHECK(names_in(world.checkpoints()) == std::vector<std::string>{"latest", "step-00000003"});
  });
}
